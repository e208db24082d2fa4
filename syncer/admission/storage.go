package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/converted/stored"
)

// StoragePath is where the webhook is served that limits what converted tenants
// store.
const StoragePath = "/validate-converted-storage"

// StorageUsage is what tenants store.
type StorageUsage interface {
	// Counts returns an error unless the objects of a resource are counted.
	Counts(resource schema.GroupResource) error
	// Reserve counts a write, or returns an error if it would exceed a limit.
	Reserve(tenant string, write stored.Write, most stored.Amount) error
}

// Storage answers the super cluster about objects of all kinds.
type Storage struct {
	// Usage counts.
	Usage StorageUsage
	// Limits returns how much a tenant may store.
	Limits func(ctx context.Context, tenant string) (stored.Amount, error)
	// Active reports whether this replica answers.
	Active func() bool
}

// Handle implements admission.Handler.
func (s *Storage) Handle(ctx context.Context, request admission.Request) admission.Response {
	object, old := metav1.PartialObjectMetadata{}, metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if request.Operation == admissionv1.Update {
		if err := json.Unmarshal(request.OldObject.Raw, &old); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	if reason := uncounted(request); reason != "" {
		return admission.Denied(reason)
	}
	size := int64(len(request.Object.Raw))
	write := stored.Write{UID: object.UID, Bytes: size, Growth: stored.Amount{Objects: 1, Bytes: size}}
	if request.Operation == admissionv1.Update {
		write.UID, write.Version = old.UID, old.ResourceVersion
		write.Growth = stored.Amount{Bytes: size - int64(len(request.OldObject.Raw))}
	}
	write.Dry = request.DryRun != nil && *request.DryRun
	tenant := storedFor(request, &object)
	switch {
	case tenant == "", isRemoved(request, &object, &old):
		return admission.Allowed("")
	case !write.Grows():
		_ = s.Usage.Reserve(tenant, write, stored.Amount{}) // allows it, and notes the size
		return admission.Allowed("")
	}
	return s.reserve(ctx, request, tenant, write)
}

// isRemoved reports whether an update removes the last finalizer of an object that
// is being deleted, so that nothing is stored. Other updates of it store what they
// add, for as long as its finalizers stay.
func isRemoved(request admission.Request, object, old *metav1.PartialObjectMetadata) bool {
	graceful := object.DeletionGracePeriodSeconds != nil && *object.DeletionGracePeriodSeconds > 0
	isNamespace := request.Kind.Group == "" && request.Kind.Kind == "Namespace" // has finalizers in its spec, too
	return request.SubResource == "" && old.DeletionTimestamp != nil && len(object.Finalizers) == 0 && !graceful && !isNamespace
}

// uncounted returns why the objects of a CRD could not be counted; empty if they
// can be, and for other requests. A conversion webhook is the tenant's: what it
// converts for a list is not what is stored.
func uncounted(request admission.Request) string {
	if groupResource(request) != stored.Definitions() {
		return ""
	}
	type version struct {
		Served  bool `json:"served"`
		Storage bool `json:"storage"`
	}
	crd := struct {
		Spec struct {
			Versions   []version `json:"versions"`
			Conversion struct {
				Strategy apiextensionsv1.ConversionStrategyType `json:"strategy"`
			} `json:"conversion"`
		} `json:"spec"`
	}{}
	err := json.Unmarshal(request.Object.Raw, &crd)
	switch {
	case err != nil || !slices.ContainsFunc(crd.Spec.Versions, func(v version) bool { return v.Served }):
		return "no version of the CRD is served, so that its objects could not be counted: serve one, or delete the CRD"
	case crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter &&
		!slices.ContainsFunc(crd.Spec.Versions, func(v version) bool { return v.Served && v.Storage }):
		return "the CRD has a conversion webhook, and its stored version is not served, so that its objects could not be counted: " +
			"serve that version"
	}
	return ""
}

func groupResource(request admission.Request) schema.GroupResource {
	return schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
}

func (s *Storage) reserve(ctx context.Context, request admission.Request, tenant string, write stored.Write) admission.Response {
	if !s.Active() {
		return admission.Errored(http.StatusServiceUnavailable, errStandby)
	}
	if err := s.Usage.Counts(groupResource(request)); err != nil {
		return admission.Errored(http.StatusServiceUnavailable, err)
	}
	most, err := s.Limits(ctx, tenant)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the limits of a tenant", "tenant", tenant)
		return admission.Errored(http.StatusServiceUnavailable, errNoTenant)
	}
	if err := s.Usage.Reserve(tenant, write, most); err != nil {
		return admission.Denied(err.Error())
	}
	return admission.Allowed("")
}

// storedFor returns the cluster key of the tenant whose object a request is for:
// the one whose account sends it, or the one that the object's label names.
func storedFor(request admission.Request, object metav1.Object) string {
	return cmp.Or(accountOf(request), object.GetLabels()[names.Converted])
}

// accountOf returns the cluster key of the tenant whose client sends a request;
// empty for others.
func accountOf(request admission.Request) string {
	namespace, name, err := serviceaccount.SplitUsername(request.UserInfo.Username) // fails for other users
	if err != nil || name != names.ConvertedAccount {
		return ""
	}
	return namespace
}

// StorageLimits finds the limits of tenants.
type StorageLimits struct {
	// Namespaces reads the namespaces of converted tenants, and VirtualClusters
	// what these say.
	Namespaces, VirtualClusters client.Reader
	// Most is how much a tenant may store that has no limits of its own.
	Most stored.Amount
}

// Of returns how much a tenant may store.
func (l StorageLimits) Of(ctx context.Context, tenant string) (stored.Amount, error) {
	initial, vc := &corev1.Namespace{}, &tenancyv1alpha1.VirtualCluster{}
	if err := l.Namespaces.Get(ctx, client.ObjectKey{Name: names.SuperNamespace(tenant, metav1.NamespaceDefault)}, initial); err != nil {
		return stored.Amount{}, fmt.Errorf("get the first namespace of tenant %s: %w", tenant, err)
	}
	key := names.OwnerKey(initial.Labels)
	if err := l.VirtualClusters.Get(ctx, key, vc); err != nil {
		return stored.Amount{}, fmt.Errorf("get VirtualCluster %s: %w", key, err)
	}
	if vc.Status.ClusterNamespace != tenant {
		return stored.Amount{}, errors.New("the VirtualCluster is another one")
	}
	return stored.LimitsOf(vc, l.Most), nil
}
