package resources

import (
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// class is a kind that tenants choose from: they see what is published, under its own name. Its labels come up, since tools find
// classes by them, but not ours; of the annotations only those that say which class is the default one, for others are notes of
// the super cluster's admins.
//
// The function show writes what a tenant sees of a class into another object, and empties what it does not see, so that the
// tenant can add nothing there. The function replace compares what cannot be changed in place.
func class[T client.Object](
	name string, object T, list client.ObjectList, show func(to, from T), replace func(a, b T) bool, annotations ...string,
) kinds.Up[T] {
	return kinds.Up[T]{
		Name: name, Object: object, List: list,
		Class: true,
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

// takeAnnotations gives an object these annotations as another has them, and leaves its others alone.
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

// notOffered tells a tenant that a field has to name a class that the super cluster offers, and how to find those; classes is what
// kubectl calls them.
func notOffered(field, classes, name string) error {
	problem := "the super cluster does not offer"
	if name == "" {
		problem = "names no class"
	}
	return fmt.Errorf("%s is %q, which %s: choose one of those that kubectl get %s -l %s lists",
		field, name, problem, classes, names.FromSuper)
}
