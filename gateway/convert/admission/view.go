package admission

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// view turns requests of the super cluster into those of a tenant.
type view struct{ Tenant }

// errNoCRD is a custom resource of a CRD that the gateway does not know yet.
var errNoCRD = errors.New("the CustomResourceDefinition is not known yet: try again")

// target is what a request is for.
type target struct {
	kind kinds.Kind
	// resource and object are those of the request. The object of the call may be
	// in another form.
	resource schema.GroupVersionResource
	object   schema.GroupVersionKind
	// namespace and name are the tenant's.
	namespace, name string
	namer           naming.Namer
	subresource     string
}

// target returns what a request is for; false if the tenant does not have it.
func (v view) target(r *admissionv1.AdmissionRequest) (target, bool, error) {
	kind, err := v.kindOf(r)
	switch {
	case err != nil:
		return target{}, false, err
	case !kind.Served(), r.SubResource != "" && kind.Subresources[r.SubResource].Form == "":
		return target{}, false, nil
	case kind.Reserves && names.PlatformPolicy(r.Name):
		return target{}, false, nil
	}
	resource, object := ptr.Deref(r.RequestResource, r.Resource), ptr.Deref(r.RequestKind, r.Kind)
	t := target{
		kind: kind, subresource: r.SubResource, namer: naming.Namer{Key: v.Namer.Key, Namespaces: v.Namer.Namespaces},
		resource: schema.GroupVersionResource{Group: v.groupOf(kind, resource.Group), Version: resource.Version, Resource: resource.Resource},
		object:   schema.GroupVersionKind{Group: v.groupOf(kind, object.Group), Version: object.Version, Kind: object.Kind},
	}
	return t, true, v.name(&t, r)
}

// kindOf returns the kind of the resource of a request.
func (v view) kindOf(r *admissionv1.AdmissionRequest) (kinds.Kind, error) {
	if r.Resource.Group == kinds.Shelf.Group {
		kind, _ := kinds.FindStored(kinds.Shelf, r.Kind.Kind)
		return kind, nil
	}
	group, isCustom := v.Namer.TenantGroup(r.Resource.Group)
	if !isCustom {
		return kinds.Find(r.Resource.Group, r.Resource.Resource), nil
	}
	resource := schema.GroupResource{Group: group, Resource: r.Resource.Resource}
	crd, ok := v.CRDs.Find(v.Namer.Key, resource)
	if !ok {
		return kinds.Kind{}, errNoCRD
	}
	return kinds.Custom(group, resource.Resource, crd.Spec.Names.Kind, crd.Spec.Scope == "Namespaced"), nil
}

// groupOf returns the tenant's name of the API group of a resource or an object.
func (v view) groupOf(kind kinds.Kind, super string) string {
	if super == kinds.Shelf.Group {
		return kind.Group
	}
	if tenant, ok := v.Namer.TenantGroup(super); ok {
		return tenant
	}
	return super
}

// name sets the names of a target.
func (v view) name(t *target, r *admissionv1.AdmissionRequest) (err error) {
	switch {
	case t.kind.IsNamespace():
		t.name, err = v.ofNamespace(t, r)
		t.namespace = t.name
		return err
	case t.kind.IsCRD():
		t.name, _ = v.Namer.TenantCRD(r.Name)
	case t.kind.IsStored():
		t.name = naming.Unshelved(r.Name)
	default:
		t.name = r.Name
	}
	if t.kind.Stored.InRoot {
		t.namer.Namespaces = also{t.namer.Namespaces, r.Namespace, ""}
		return nil
	}
	if r.Namespace != "" {
		t.namespace, err = v.Namer.TenantNamespace(r.Namespace)
	}
	return err
}

// ofNamespace returns the tenant's name of a Namespace. The index does not know
// one that is being created, but the gateway has written its name.
func (v view) ofNamespace(t *target, r *admissionv1.AdmissionRequest) (string, error) {
	if name, err := v.Namer.TenantNamespace(r.Name); err == nil {
		return name, nil
	}
	object, err := document.ParseTrusted(r.Object.Raw)
	if err != nil {
		return "", fmt.Errorf("read a Namespace: %w", err)
	}
	name, _, _ := unstructured.NestedString(object, metadata, "annotations", names.Namespace)
	if super, err := v.Namer.Namespace(name); err != nil || super != r.Name {
		return "", errors.New("a namespace of the super cluster is not one of the tenant")
	}
	t.namer.Namespaces = also{t.namer.Namespaces, r.Name, name}
	return name, nil
}

// also are namespaces and one more.
type also struct {
	naming.Namespaces

	super, tenant string
}

// TenantName implements naming.Namespaces.
func (a also) TenantName(clusterKey, super string) (string, bool) {
	if super == a.super {
		return a.tenant, true
	}
	return a.Namespaces.TenantName(clusterKey, super)
}

// isNone reports whether a document is none.
func isNone(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// up returns an object as the tenant knows it; nil for none.
func (v view) up(t target, raw []byte) (*unstructured.Unstructured, error) {
	if isNone(raw) {
		return nil, nil
	}
	object, err := document.ParseTrusted(raw)
	if err != nil {
		return nil, fmt.Errorf("read an object of the super cluster: %w", err)
	}
	converter := document.Response{
		Namer: t.namer, Kind: t.kind, Fields: t.kind.FieldsOf(t.subresource), Namespace: t.namespace, Seal: func(string) string { return "" },
	}
	if err := converter.Up(object); err != nil {
		return nil, fmt.Errorf("convert an object of the super cluster: %w", err)
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// attributes returns a request as an apiserver of the tenant would have it.
func (v view) attributes(t target, r *admissionv1.AdmissionRequest, who user.Info) (admission.Attributes, error) {
	object, err := v.up(t, r.Object.Raw)
	if err != nil {
		return nil, err
	}
	before, err := v.up(t, r.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	options, err := optionsOf(r)
	if err != nil {
		return nil, err
	}
	return admission.NewAttributesRecord(orNil(object), orNil(before), t.object, t.namespace, t.name, t.resource, t.subresource,
		admission.Operation(r.Operation), options, r.DryRun != nil && *r.DryRun, who), nil
}

// orNil returns an interface that is nil if the pointer is.
func orNil(object *unstructured.Unstructured) runtime.Object {
	if object == nil {
		return nil
	}
	return object
}

// optionsOf returns the options of a request, which name nothing of the super
// cluster.
func optionsOf(r *admissionv1.AdmissionRequest) (runtime.Object, error) {
	if isNone(r.Options.Raw) {
		return nil, nil
	}
	object, err := document.ParseTrusted(r.Options.Raw)
	if err != nil {
		return nil, fmt.Errorf("read the options of a request: %w", err)
	}
	return &unstructured.Unstructured{Object: object}, nil
}
