package conversion

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"golang.org/x/time/rate"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Handler serves the calls of the super cluster.
type Handler struct {
	Tenants *Tenants
	// CRDs has those of all tenants, and Read reads one of the super cluster around
	// it.
	CRDs *resources.Index
	Read func(ctx context.Context, name string) (*resources.CRD, error)
	// IsGone reports whether a tenant that is not served is being deleted, or has
	// been.
	IsGone func(ctx context.Context, clusterKey string) bool

	reading *rate.Limiter
}

// reads is how often in a second a path that the index does not know makes the
// gateway read a CRD.
const reads = 10

// NewHandler returns a handler.
func NewHandler(
	tenants *Tenants, crds *resources.Index, read func(ctx context.Context, name string) (*resources.CRD, error),
	isGone func(ctx context.Context, clusterKey string) bool,
) *Handler {
	return &Handler{Tenants: tenants, CRDs: crds, Read: read, IsGone: isGone, reading: rate.NewLimiter(reads, reads)}
}

// maxReview is how much of a call is read, in bytes. A call has one object, unless
// a list is sent to the super cluster.
const maxReview = 12 << 20

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, crd := h.find(r)
	if crd == nil {
		http.NotFound(w, r)
		return
	}
	var review apiextensionsv1.ConversionReview // as v1beta1, too
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "the body is no ConversionReview", http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	converted, err := h.convert(r.Context(), key, crd, review.Request)
	if err != nil {
		review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	review.Request, review.Response.ConvertedObjects = nil, converted
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) //nolint:errchkjson // the super cluster sees what is missing
}

// find returns the CRD to which a path belongs, and the cluster key of its tenant;
// nil if there is none. The path is that of the CRD in the super cluster, which
// has a secret.
func (h *Handler) find(r *http.Request) (clusterKey string, found *resources.CRD) {
	key, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, names.ConversionPath), "/")
	name, _, _ := strings.Cut(rest, "/")
	if r.Method != http.MethodPost || key == "" {
		return "", nil
	}
	if crd, ok := h.CRDs.Find(key, schema.ParseGroupResource(name)); ok && isAt(crd, r.URL.Path) {
		return key, crd
	}
	super, err := naming.Namer{Key: key}.CRD(name)
	if err != nil || !h.reading.Allow() {
		return "", nil
	}
	crd, err := h.Read(r.Context(), super)
	if err != nil || crd.Labels[names.Converted] != key {
		return "", nil
	}
	h.CRDs.Set(crd)
	if crd, ok := h.CRDs.Find(key, schema.ParseGroupResource(name)); ok && isAt(crd, r.URL.Path) {
		return key, crd
	}
	return "", nil
}

// isAt reports whether the webhook of a CRD is the gateway at a path.
func isAt(crd *resources.CRD, path string) bool {
	config := ClientOf(crd)
	if config == nil || config.URL == nil {
		return false
	}
	_, own, found := strings.Cut(*config.URL, names.ConversionPath)
	return found && subtle.ConstantTimeCompare([]byte(names.ConversionPath+own), []byte(path)) == 1
}

// ClientOf returns how the webhook of a CRD is called; nil if it has none.
func ClientOf(crd *resources.CRD) *document.ClientConfig {
	if c := crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil {
		return c.Webhook.ClientConfig
	}
	return nil
}

var (
	errNotServed = errors.New("the conversion webhooks of the tenant are not known yet: try again")
	errVersion   = errors.New("the API version is not one of the tenant")
)

// convert returns the objects of a request in the version that it asks for.
func (h *Handler) convert(
	ctx context.Context, key string, crd *resources.CRD, request *apiextensionsv1.ConversionRequest,
) ([]runtime.RawExtension, error) {
	objects, err := parse(request.Objects)
	if err != nil {
		return nil, err
	}
	tenant, err := h.Tenants.use(key)
	switch {
	case err != nil:
		return nil, err
	case tenant == nil && !h.IsGone(ctx, key):
		return nil, errNotServed
	case tenant == nil: // its objects have to be deleted
		for _, object := range objects {
			object["apiVersion"] = request.DesiredAPIVersion
		}
	default:
		if objects, err = tenant.convert(ctx, crd, objects, request.DesiredAPIVersion); err != nil {
			return nil, err
		}
	}
	return write(objects)
}

func parse(raw []runtime.RawExtension) ([]document.Object, error) {
	objects := make([]document.Object, len(raw))
	for i := range raw {
		var err error
		if objects[i], err = document.ParseTrusted(raw[i].Raw); err != nil {
			return nil, fmt.Errorf("read an object of the super cluster: %w", err)
		}
	}
	return objects, nil
}

func write(objects []document.Object) ([]runtime.RawExtension, error) {
	raw := make([]runtime.RawExtension, len(objects))
	for i := range objects {
		data, err := document.Write(objects[i])
		if err != nil {
			return nil, fmt.Errorf("write a converted object: %w", err)
		}
		raw[i].Raw = data
	}
	return raw, nil
}

// convert calls the tenant's webhook.
func (e *entry) convert(ctx context.Context, crd *resources.CRD, objects []document.Object, version string) ([]document.Object, error) {
	desired, ok := e.tenant.Namer.TenantGroup(version)
	if !ok {
		return nil, errVersion
	}
	to, err := schema.ParseGroupVersion(desired)
	if err != nil {
		return nil, errVersion
	}
	view := viewOf(e.tenant.Namer, crd)
	own := make([]unstructured.Unstructured, len(objects))
	for i := range objects {
		if own[i], err = view.up(objects[i]); err != nil {
			return nil, err
		}
	}
	converted, err := e.call(ctx, crd, own, to)
	if err != nil {
		return nil, err
	}
	results := make([]document.Object, len(objects))
	for i := range objects {
		if results[i], err = view.down(objects[i], version, converted[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// call converts objects by the webhook. The call ends by itself after a while, but
// not with its context.
func (e *entry) call(
	ctx context.Context, crd *resources.CRD, objects []unstructured.Unstructured, to schema.GroupVersion,
) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{Items: objects}
	list.SetGroupVersionKind(to.WithKind(crd.Spec.Names.ListKind))
	own := crd.DeepCopy()
	own.Spec.Conversion.Webhook.ClientConfig = new(document.Unhook(*ClientOf(crd)))
	_, converter, err := e.factory.NewConverter(own)
	if err != nil {
		return nil, err
	}
	ctx, end, err := e.budget.Begin(ctx, queueing)
	if err != nil {
		return nil, err
	}
	type result struct {
		object runtime.Object
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer end()
		object, err := converter.ConvertToVersion(list, to)
		done <- result{object, err}
	}()
	<-ctx.Done() // when the call has ended, too
	select {
	case r := <-done:
		if r.err != nil {
			return nil, withoutPrefix(r.err, list)
		}
		return r.object.(*unstructured.UnstructuredList).Items, nil // of the same type
	default:
		return nil, context.Cause(ctx)
	}
}

// withoutPrefix returns the error of a webhook without what the super cluster will
// say before it.
func withoutPrefix(err error, list *unstructured.UnstructuredList) error {
	prefix := fmt.Sprintf("conversion webhook for %v ", list.GroupVersionKind())
	text, found := strings.CutPrefix(err.Error(), prefix)
	if !found {
		return err
	}
	return errors.New(strings.TrimPrefix(text, "failed: "))
}
