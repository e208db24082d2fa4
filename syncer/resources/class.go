package resources

import (
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// class returns a kind that tenants choose from: they get the published
// classes, with the same names. Labels are synced up, since tools find classes
// by them, except those of VirtualCluster's domain; annotations are only synced
// up if they mark the default class, because others are notes of the super
// cluster's admins.
//
// The function show writes the visible fields of a class to another object, and
// clears the others, so that the tenant cannot add to them. The function
// replace compares immutable fields.
func class[T client.Object](
	name string, object T, list client.ObjectList, show func(to, from T), replace func(a, b T) bool, annotations ...string,
) kinds.Up[T] {
	return kinds.Up[T]{
		Name: name, Object: object, List: list,
		Summary:       "up, if they are [offered](docs/admins/sync.md#offer-classes)",
		ClusterScoped: true, Optional: true, Class: true,
		Desired: func(_ kinds.View, super T) T {
			desired := object.DeepCopyObject().(T)
			desired.SetName(super.GetName())
			desired.SetLabels(publicLabels(super.GetLabels()))
			takeAnnotations(desired, super, annotations)
			show(desired, super)
			return desired
		},
		Merge: func(tenant, desired T) {
			tenant.SetLabels(desired.GetLabels())
			takeAnnotations(tenant, desired, annotations)
			show(tenant, desired)
		},
		Replace: replace,
	}
}

// takeAnnotations copies these annotations from one object to another, whose
// other annotations are unchanged.
func takeAnnotations(to, from client.Object, keys []string) {
	out, has := maps.Clone(to.GetAnnotations()), from.GetAnnotations()
	for _, key := range keys {
		value, ok := has[key]
		switch {
		case !ok:
			delete(out, key)
		case out == nil:
			out = map[string]string{key: value}
		default:
			out[key] = value
		}
	}
	to.SetAnnotations(out)
}

// notOffered returns an error for a field that does not name an offered class;
// classes is the resource for kubectl.
func notOffered(field, classes, name string) error {
	problem := "the super cluster does not offer"
	if name == "" {
		problem = "names no class"
	}
	return fmt.Errorf("%s is %q, which %s: choose one of those that kubectl get %s -l %s lists",
		field, name, problem, classes, names.FromSuper)
}
