package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Path begins the paths at which the super cluster calls the gateway. The phase
// and the secret of the registration follow.
const Path = "/converted-admission/"

// The phases of admission.
const (
	mutate   = "mutate"
	validate = "validate"
)

// Namespaces knows which tenants the namespaces of the super cluster belong to.
type Namespaces interface {
	// Tenant returns the cluster key of a namespace; empty for one of no tenant.
	Tenant(superName string) string
}

// Handler serves the calls of the super cluster's webhooks.
type Handler struct {
	Tenants    *Tenants
	Index      *Index
	Namespaces Namespaces
	// IsGateway reports whether a user of the super cluster is the gateway.
	IsGateway func(name string) bool
	// Accepts reports whether a call has the secret of the registration.
	Accepts func(ctx context.Context, secret string) bool
	// IsGone reports whether a tenant that is not served is being deleted, or has
	// been.
	IsGone func(ctx context.Context, clusterKey string) bool
}

const (
	// maxReview is how much of a call is read, in bytes: two objects and more.
	maxReview = 12 << 20
	// grace is how long requests may lack their user after a tenant has got its
	// first webhook or policy: they were sent before.
	grace = 10 * time.Second
)

// noRetry keeps clients from trying again in the same call, in which the worker of
// a controller would wait.
const noRetry = 0

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	phase, secret, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Path), "/")
	if r.Method != http.MethodPost || phase != mutate && phase != validate || !h.Accepts(r.Context(), secret) {
		http.NotFound(w, r)
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "the body is no AdmissionReview", http.StatusBadRequest)
		return
	}
	response, err := h.review(r.Context(), phase, review.Request)
	if err != nil {
		response = denied(err)
	}
	response.UID = review.Request.UID
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) //nolint:errchkjson // the super cluster sees what is missing
}

// denied is the response to a request that is not admitted.
func denied(err error) *admissionv1.AdmissionResponse {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	return &admissionv1.AdmissionResponse{Result: new(status.Status())}
}

// allowed is the response to a request that is none of the tenant's.
func allowed() *admissionv1.AdmissionResponse { return &admissionv1.AdmissionResponse{Allowed: true} }

// review evaluates a request.
func (h *Handler) review(ctx context.Context, phase string, r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	key := h.tenantOf(r)
	since, has := h.Index.Has(key)
	if key == "" || !has {
		return allowed(), nil
	}
	who, kind := h.classify(key, r.UserInfo)
	if kind == platform {
		return allowed(), nil
	}
	engine, limits, served, err := h.Tenants.use(key)
	switch {
	case err != nil:
		return nil, err
	case !served && h.IsGone(ctx, key), kind == unknown && time.Since(since) < grace:
		return allowed(), nil
	case !served || kind == unknown:
		return nil, apierrors.NewServiceUnavailable("the webhooks and policies of the tenant are not known yet: try again")
	}
	ctx, end, err := limits.begin(ctx, kind, isConverted(r))
	if err != nil {
		return nil, apierrors.NewTooManyRequests(err.Error(), noRetry)
	}
	defer end()
	target, isOwn, err := engine.view.target(r)
	if err != nil || !isOwn {
		return allowed(), err
	}
	attributes, err := engine.view.attributes(target, r, who)
	if err != nil {
		return nil, err
	}
	response, err := engine.evaluate(ctx, phase, target, r, attributes)
	if err != nil && ctx.Err() != nil {
		err = apierrors.NewTimeoutError(context.Cause(ctx).Error(), noRetry)
	}
	return response, err
}

// evaluate runs one phase.
func (e *engine) evaluate(
	ctx context.Context, phase string, target target, r *admissionv1.AdmissionRequest, attributes admission.Attributes,
) (*admissionv1.AdmissionResponse, error) {
	ctx, end, err := e.turns.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	warnings := &warnings{}
	ctx = warning.WithWarningRecorder(ctx, warnings)
	response := allowed()
	if phase == validate {
		err = e.validate(ctx, attributes)
		response.Warnings = warnings.all
		return response, err
	}
	var before document.Object
	object, hasObject := attributes.GetObject().(*unstructured.Unstructured)
	if hasObject {
		before = runtime.DeepCopyJSON(object.Object)
	}
	if err := e.admit(ctx, attributes); err != nil {
		return nil, err
	}
	response.Warnings = warnings.all
	if !hasObject {
		return response, nil
	}
	patch, err := patchOf(target, r.Object.Raw, before, object.Object)
	if err != nil {
		return nil, apierrors.NewForbidden(target.resource.GroupResource(), target.name, err)
	}
	if patch != nil {
		response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	return response, nil
}

// warnings are those of webhooks and policies.
type warnings struct{ all []string }

// maxWarnings is how many warnings a response has.
const maxWarnings = 20

// AddWarning implements warning.Recorder.
func (w *warnings) AddWarning(_, text string) {
	if len(w.all) < maxWarnings && !slices.Contains(w.all, text) {
		w.all = append(w.all, text)
	}
}

// tenantOf returns the cluster key of the tenant whose object a request is for;
// empty for none.
func (h *Handler) tenantOf(r *admissionv1.AdmissionRequest) string {
	isNamespace := r.Resource.Group == "" && r.Resource.Resource == "namespaces"
	switch {
	case r.Namespace != "" && !isNamespace:
		return cmp.Or(h.Namespaces.Tenant(r.Namespace), labelOf(r.Object), labelOf(r.OldObject), r.Namespace)
	case isNamespace, r.Resource.Group == "apiextensions.k8s.io":
		return cmp.Or(labelOf(r.OldObject), labelOf(r.Object))
	}
	return h.Tenants.ofGroup(r.Resource.Group)
}

// labelOf returns the cluster key in the label of an object.
func labelOf(object runtime.RawExtension) string {
	var labelled metav1.PartialObjectMetadata
	if len(object.Raw) == 0 || json.Unmarshal(object.Raw, &labelled) != nil {
		return ""
	}
	return labelled.Labels[names.Converted]
}
