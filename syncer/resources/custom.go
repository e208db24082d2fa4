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

// Custom returns the kind of a custom resource: its fields are synced in one
// direction, and the status of a kind that is synced down is synced up.
func Custom(r kinds.CustomResource) kinds.Flow {
	name := r.GVK.GroupKind().String()
	object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(r.GVK)
	list.SetGroupVersionKind(r.GVK.GroupVersion().WithKind(r.GVK.Kind + "List"))
	if r.Direction == tenancyv1alpha1.SyncUp {
		return customUp(name, object, list, r)
	}
	down := customDown(name, object, list, r)
	if r.GVK.Group == gatewayGroup {
		return route(down, r)
	}
	return down
}

// customDown returns a kind that is synced down. Without a status subresource,
// the status is a field that is synced back.
func customDown(
	name string, object *unstructured.Unstructured, list *unstructured.UnstructuredList, r kinds.CustomResource,
) kinds.Down[*unstructured.Unstructured] {
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
	k.Status = showObserved
	k.Same = func(a, b *unstructured.Unstructured) bool {
		return semanticEqual(a.Object["status"], b.Object["status"])
	}
	return k
}

// showStatus copies the status of the copy to the tenant's object, without the
// super cluster's names.
func showStatus(v kinds.View, tenant, super *unstructured.Unstructured) {
	replaceStatus(tenant, super)
	if status, ok := tenant.Object["status"]; ok {
		tenant.Object["status"] = cleanTexts(v, status)
	}
}

// showObserved is showStatus for a kind whose generation does not change with
// its status: by convention, observedGeneration is a generation of the object.
// The tenant's generation of an older observation is unknown.
func showObserved(v kinds.View, tenant, super *unstructured.Unstructured) {
	showStatus(v, tenant, super)
	replaceObserved(tenant.Object["status"], super.GetGeneration(), tenant.GetGeneration())
}

// replaceObserved replaces the observed generations in a value, in place.
func replaceObserved(value any, from, to int64) {
	switch value := value.(type) {
	case map[string]any:
		for key, in := range value {
			observed, ok := in.(int64)
			switch {
			case !ok || key != "observedGeneration":
				replaceObserved(in, from, to)
			case observed == from:
				value[key] = to
			default:
				value[key] = int64(0)
			}
		}
	case []any:
		for _, in := range value {
			replaceObserved(in, from, to)
		}
	}
}

// customUp returns a kind that is synced up with the same names; cluster-scoped
// objects only if they are published.
func customUp(name string, object *unstructured.Unstructured, list *unstructured.UnstructuredList, r kinds.CustomResource) kinds.Flow {
	k := kinds.Up[*unstructured.Unstructured]{
		Name: name, Object: object, List: list,
		Class: !r.Namespaced, Offered: name == gateways,
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

// publicLabels returns the labels of an object of the super cluster without
// those of VirtualCluster's domain.
func publicLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, names.Domain+"/") })
	return out
}

// fieldsOf returns a deep copy of an object without its metadata, with the kind
// that is synced, not the one that the object states.
func fieldsOf(obj *unstructured.Unstructured, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	out := obj.DeepCopy()
	delete(out.Object, "metadata")
	out.SetGroupVersionKind(gvk)
	return out
}

// replaceFields replaces the fields of an object by those of another, except
// its identity and one field.
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

// replaceStatus replaces the status of an object by that of another.
func replaceStatus(to, from *unstructured.Unstructured) {
	if status, ok := from.Object["status"]; ok {
		to.Object["status"] = runtime.DeepCopyJSONValue(status)
		return
	}
	delete(to.Object, "status")
}

// cleanTexts replaces the super cluster's names in all strings of a value, in
// place.
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
