package hosted

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/dynamic"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Why a tenant cannot write a CRD.
var (
	errReservedLabel = fmt.Errorf("the label %s and the annotation %s are reserved for CustomResourceDefinitions that the platform shares",
		names.SharedCRD, names.FixedCRD)
	errShared = fmt.Errorf("the platform shares this CustomResourceDefinition: use it as it is, or make it your own by removing "+
		"its label %s, with no other change", names.SharedCRD)
	errFixed = map[string]error{
		names.Forced: errors.New("the platform forces this CustomResourceDefinition upon all clusters: use it as it is"),
		names.Replaced: fmt.Errorf("the platform's CustomResourceDefinition is in the place of your own: to change yours, annotate the "+
			"namespace %s with %s=LocalCRDFirst", metav1.NamespaceSystem, names.CRDPolicy),
	}
)

// protectSharedCRDs lets only the platform, and the control plane itself, write
// CRDs that the platform shares with the tenant.
type protectSharedCRDs struct {
	// definitions reads the CRDs of the tenant.
	definitions dynamic.ResourceInterface
}

var _ initializer.WantsDynamicClient = (*protectSharedCRDs)(nil)

// SetDynamicClient implements initializer.WantsDynamicClient.
func (p *protectSharedCRDs) SetDynamicClient(c dynamic.Interface) {
	p.definitions = c.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *protectSharedCRDs) ValidateInitialization() error {
	if p.definitions == nil {
		return errors.New("there is no client of CustomResourceDefinitions")
	}
	return nil
}

// Handles implements admission.Interface.
func (*protectSharedCRDs) Handles(operation admission.Operation) bool {
	return operation != admission.Connect
}

// Validate implements admission.ValidationInterface.
func (p *protectSharedCRDs) Validate(ctx context.Context, request admission.Attributes, _ admission.ObjectInterfaces) error {
	if request.GetResource().GroupResource() != apiextensions.Resource("customresourcedefinitions") || isPlatform(ctx) || isInternal(ctx) {
		return nil
	}
	now, _ := request.GetObject().(*apiextensions.CustomResourceDefinition)
	was, _ := request.GetOldObject().(*apiextensions.CustomResourceDefinition)
	if request.GetOperation() == admission.Create {
		return forbid(request, p.refuseCreation(ctx, now))
	}
	return forbid(request, refuseChange(was, now))
}

// forbid returns the response for a reason; nil for none.
func forbid(request admission.Attributes, reason error) error {
	if reason == nil {
		return nil
	}
	return admission.NewForbidden(request, reason)
}

// refuseCreation returns why the tenant cannot create a CRD; nil if it can.
func (p *protectSharedCRDs) refuseCreation(ctx context.Context, now *apiextensions.CustomResourceDefinition) error {
	if now == nil || isReserved(now) {
		return errReservedLabel
	}
	found, err := p.definitions.Get(ctx, now.Name, metav1.GetOptions{})
	if err != nil || found.GetLabels()[names.SharedCRD] == "" {
		return nil //nolint:nilerr // the apiserver responds that it exists, if it does
	}
	return reasonOf(found)
}

// refuseChange returns why the tenant cannot change or delete a CRD; nil if it
// can. now is nil for a deletion.
func refuseChange(was, now *apiextensions.CustomResourceDefinition) error {
	switch {
	case was == nil || !isReserved(was):
		if now != nil && isReserved(now) {
			return errReservedLabel
		}
		return nil
	case now == nil, !equality.Semantic.DeepEqual(protected(was), protected(now)):
		return reasonOf(was)
	case reserved(now) == reserved(was):
		return nil
	case reserved(was).fixed == "" && reserved(now) == reservation{}:
		return nil // the tenant makes the copy its own
	}
	return reasonOf(was)
}

// protected returns what a tenant cannot change of a copy.
func protected(d *apiextensions.CustomResourceDefinition) any {
	return []any{d.Spec, d.Status, d.Finalizers, d.OwnerReferences}
}

// reservation is what the platform writes into the metadata of a copy.
type reservation struct{ mark, fixed string }

func reserved(d metav1.Object) reservation {
	return reservation{d.GetLabels()[names.SharedCRD], d.GetAnnotations()[names.FixedCRD]}
}

func isReserved(d metav1.Object) bool { return reserved(d) != reservation{} }

// reasonOf returns why a tenant cannot write a copy.
func reasonOf(d metav1.Object) error {
	if fixed := errFixed[reserved(d).fixed]; fixed != nil {
		return fixed
	}
	return errShared
}

// platformKey is the key of the context of the platform's requests.
type platformKey struct{}

// attribute marks the context of the platform's requests.
func (c *ControlPlane) attribute(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.isPlatform(r.TLS) {
			r = r.WithContext(context.WithValue(r.Context(), platformKey{}, true))
		}
		handler.ServeHTTP(w, r)
	})
}

// isPlatform reports whether a context is that of a request of the platform.
func isPlatform(ctx context.Context) bool {
	platform, _ := ctx.Value(platformKey{}).(bool)
	return platform
}
