package resources

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Custom is the kind of a custom resource: its fields flow the one way, and of what flows down the status comes back.
func Custom(r kinds.CustomResource) kinds.Flow {
	name := r.GVK.GroupKind().String()
	object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(r.GVK)
	list.SetGroupVersionKind(r.GVK.GroupVersion().WithKind(r.GVK.Kind + "List"))
	if r.Direction == tenancyv1alpha1.SyncUp {
		return customUp(name, object, list, r)
	}
	return customDown(name, object, list, r)
}

// customDown flows down. Without a subresource the status is a field like others, which the tenant's object takes over.
func customDown(name string, object *unstructured.Unstructured, list *unstructured.UnstructuredList, r kinds.CustomResource) kinds.Flow {
	k := kinds.Down[*unstructured.Unstructured]{
		Name: name, Object: object, List: list,
		Desired: func(_ kinds.View, tenant *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			desired := fieldsOf(tenant, r.GVK)
			delete(desired.Object, "status")
			return desired, nil
		},
		Merge: func(super, desired *unstructured.Unstructured) { replaceFields(super, desired, "status") },
	}
	if !r.Status {
		k.Back = showStatus
		return k
	}
	k.Status = showStatus
	k.Same = func(a, b *unstructured.Unstructured) bool {
		return semanticEqual(a.Object["status"], b.Object["status"])
	}
	return k
}

// showStatus shows the tenant the status of the copy without the super cluster's names.
func showStatus(v kinds.View, tenant, super *unstructured.Unstructured) {
	replaceStatus(tenant, super)
	if status, ok := tenant.Object["status"]; ok {
		tenant.Object["status"] = cleanTexts(v, status)
	}
}

// customUp is shown to the tenant under its own name; one without a namespace if it is published.
func customUp(name string, object *unstructured.Unstructured, list *unstructured.UnstructuredList, r kinds.CustomResource) kinds.Flow {
	k := kinds.Up[*unstructured.Unstructured]{
		Name: name, Object: object, List: list,
		Class: !r.Namespaced,
		Desired: func(v kinds.View, super *unstructured.Unstructured) *unstructured.Unstructured {
			desired := fieldsOf(super, r.GVK)
			cleanTexts(v, desired.Object)
			desired.SetName(super.GetName())
			desired.SetNamespace(v.Namespace)
			desired.SetLabels(publicLabels(super.GetLabels()))
			return desired
		},
		Merge: func(tenant, desired *unstructured.Unstructured) {
			replaceFields(tenant, desired, "status")
			tenant.SetLabels(desired.GetLabels())
			if !r.Status {
				replaceStatus(tenant, desired)
			}
		},
	}
	if r.Status {
		k.Status = replaceStatus
	}
	return k
}

// publicLabels are the labels of an object of the super cluster without those that are ours.
func publicLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, names.Domain+"/") })
	return out
}

// fieldsOf is a copy of an object without its metadata. It is of the kind that is synced, not of the kind that the object states.
func fieldsOf(obj *unstructured.Unstructured, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	out := obj.DeepCopy()
	delete(out.Object, "metadata")
	out.SetGroupVersionKind(gvk)
	return out
}

// replaceFields writes the fields of an object into another, but for what says which object it is and one that is left alone.
func replaceFields(to, from *unstructured.Unstructured, except string) {
	kept := func(field string) bool {
		return field == except || field == "metadata" || field == "apiVersion" || field == "kind"
	}
	maps.DeleteFunc(to.Object, func(field string, _ any) bool { return !kept(field) })
	for field, value := range from.Object {
		if !kept(field) {
			to.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// replaceStatus writes the status of an object into another.
func replaceStatus(to, from *unstructured.Unstructured) {
	if status, ok := from.Object["status"]; ok {
		to.Object["status"] = runtime.DeepCopyJSONValue(status)
		return
	}
	delete(to.Object, "status")
}

// cleanTexts takes the super cluster's names out of all texts of a value that nobody else has.
func cleanTexts(v kinds.View, value any) any {
	switch value := value.(type) {
	case string:
		return v.Tenant.Text(value, v.Namespace)
	case map[string]any:
		for key := range value {
			value[key] = cleanTexts(v, value[key])
		}
	case []any:
		for i := range value {
			value[i] = cleanTexts(v, value[i])
		}
	}
	return value
}
