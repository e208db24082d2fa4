package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// interfaces are what plugins need of the types of objects: all are as the
// tenant sent them.
func (v view) interfaces(ctx context.Context, resource schema.GroupResource) admission.ObjectInterfaces {
	return objectInterfaces{view: v, ctx: ctx, resource: resource}
}

// objectInterfaces are those of one request for a resource.
type objectInterfaces struct {
	view

	ctx      context.Context //nolint:containedctx // upstream's converters have none
	resource schema.GroupResource
}

// GetObjectCreater implements admission.ObjectInterfaces.
func (objectInterfaces) GetObjectCreater() runtime.ObjectCreater {
	return unstructuredscheme.NewUnstructuredCreator()
}

// GetObjectTyper implements admission.ObjectInterfaces.
func (objectInterfaces) GetObjectTyper() runtime.ObjectTyper {
	return unstructuredscheme.NewUnstructuredObjectTyper()
}

// GetObjectDefaulter implements admission.ObjectInterfaces. The super cluster sets
// the defaults afterwards.
func (objectInterfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return noDefaults{} }

// GetObjectConvertor implements admission.ObjectInterfaces.
func (o objectInterfaces) GetObjectConvertor() runtime.ObjectConvertor { return convertor(o) }

// GetEquivalentResourceMapper implements admission.ObjectInterfaces.
func (o objectInterfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return versionsOf{o.view}
}

type noDefaults struct{}

// Default implements runtime.ObjectDefaulter.
func (noDefaults) Default(runtime.Object) {}

// convertor converts custom resources between the versions of their CRD, and marks
// native objects, which the super cluster converts.
type convertor objectInterfaces

// Convert implements runtime.ObjectConvertor.
func (c convertor) Convert(in, out, _ any) error {
	from, isFrom := in.(*unstructured.Unstructured)
	to, isTo := out.(*unstructured.Unstructured)
	if !isFrom || !isTo {
		return fmt.Errorf("convert %T to %T: not supported", in, out)
	}
	wanted := to.GroupVersionKind()
	crd, isCustom := c.CRDs.Find(c.Namer.Key, c.resource)
	switch {
	case from.GroupVersionKind() == wanted:
		to.Object = from.DeepCopy().Object
		return nil
	case !isCustom:
		to.Object = from.DeepCopy().Object
		return markOtherForm(to)
	}
	converted, err := c.Tenant.Convert(c.ctx, c.Namer.Key, crd, from, wanted.GroupVersion())
	if err != nil {
		return err
	}
	to.Object = converted.Object
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (convertor) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	kind := in.GetObjectKind().GroupVersionKind()
	target, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{kind})
	if !ok {
		return nil, fmt.Errorf("convert %s: not supported", kind)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(target)
	return out, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (convertor) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (newLabel, newValue string, err error) {
	return label, value, nil
}

// versionsOf knows the versions of custom resources, and the forms of native kinds.
type versionsOf struct{ view }

// EquivalentResourcesFor implements runtime.EquivalentResourceMapper.
func (v versionsOf) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) []schema.GroupVersionResource {
	crd, ok := v.CRDs.Find(v.Namer.Key, resource.GroupResource())
	if !ok {
		return nativeForms.EquivalentResourcesFor(resource, subresource)
	}
	var all []schema.GroupVersionResource
	for _, version := range crd.Spec.Versions {
		all = append(all, resource.GroupResource().WithVersion(version.Name))
	}
	return all
}

// KindFor implements runtime.EquivalentResourceMapper.
func (v versionsOf) KindFor(resource schema.GroupVersionResource, subresource string) schema.GroupVersionKind {
	crd, ok := v.CRDs.Find(v.Namer.Key, resource.GroupResource())
	switch {
	case !ok:
		return nativeForms.KindFor(resource, subresource)
	case subresource == "scale":
		return schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	}
	return resource.GroupVersion().WithKind(crd.Spec.Names.Kind)
}

// trim removes what plugins do not need, and adds the condition of the form.
func trim(object any) (any, error) {
	wantForm(object)
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields([]metav1.ManagedFieldsEntry(nil))
	}
	return object, nil
}
