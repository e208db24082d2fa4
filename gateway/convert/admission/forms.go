package admission

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// forms are the native resources that serve the same objects in several forms,
// which are versions or API groups, in the order in which Kubernetes installs them.
//
// A webhook or policy with the matchPolicy Equivalent may name one form and is
// called for requests of all. The types of which an apiserver makes the other form
// are not public, so that the super cluster converts: it calls the gateway for each
// form of an object, and in each call only what wants that form decides.
var forms = [][]schema.GroupVersionResource{
	formsOf("horizontalpodautoscalers", "autoscaling/v2", "autoscaling/v1"),
	formsOf("events", "v1", "events.k8s.io/v1"),
	formsOf("resourceclaims", "resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"),
	formsOf("resourceclaimtemplates", "resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"),
}

func formsOf(resource string, groupVersions ...string) []schema.GroupVersionResource {
	all := make([]schema.GroupVersionResource, len(groupVersions))
	for i, text := range groupVersions {
		version, _ := schema.ParseGroupVersion(text) // constants
		all[i] = version.WithResource(resource)
	}
	return all
}

// nativeForms has the forms with their kinds, and those of their subresources.
var nativeForms = newNativeForms()

func newNativeForms() runtime.EquivalentResourceMapper {
	registry := runtime.NewEquivalentResourceRegistryWithIdentity(func(r schema.GroupResource) string { return r.Resource })
	for _, all := range forms {
		for _, form := range all {
			kind := kinds.Find(form.Group, form.Resource)
			registry.RegisterKindFor(form, "", form.GroupVersion().WithKind(kind.Kind))
			for name := range kind.Subresources {
				registry.RegisterKindFor(form, name, form.GroupVersion().WithKind(kind.Kind))
			}
		}
	}
	return registry
}

// isConverted reports whether a call has the object in another form than that of
// the request.
func isConverted(r *admissionv1.AdmissionRequest) bool {
	return r.RequestResource != nil && *r.RequestResource != r.Resource
}

// otherForm is a field of the metadata of an object that is not in the form that
// its apiVersion names. No object of an apiserver has it: unknown fields of the
// metadata are removed.
const otherForm = "inOtherForm"

// markOtherForm makes webhooks and policies skip an object.
func markOtherForm(object *unstructured.Unstructured) error {
	return unstructured.SetNestedField(object.Object, true, metadata, otherForm)
}

// inThisForm is a condition of all webhooks and policies: the call has the object
// in the form that they want.
var inThisForm = admissionregistrationv1.MatchCondition{
	Name: "in-this-form",
	Expression: "![object, oldObject].exists(o, o != null && has(o.metadata) && has(o.metadata." +
		otherForm + "))",
}

// wantForm adds the condition to a webhook or policy.
func wantForm(object any) {
	switch o := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			addCondition(&o.Webhooks[i].MatchConditions)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			addCondition(&o.Webhooks[i].MatchConditions)
		}
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		addCondition(&o.Spec.MatchConditions)
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		addCondition(&o.Spec.MatchConditions)
	}
}

// addCondition adds the condition, once: informers may transform an object again.
func addCondition(conditions *[]admissionregistrationv1.MatchCondition) {
	if !slices.Contains(*conditions, inThisForm) {
		*conditions = append(*conditions, inThisForm)
	}
}
