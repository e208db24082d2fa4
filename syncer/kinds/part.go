package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part is a countable part of objects of a kind, which is limited in addition
// to the objects themselves.
type Part[T client.Object] struct {
	// Resource is the name in limits, such as services.nodeports.
	Resource string
	// Amount returns the number of parts of an object.
	Amount func(obj T) int
}

func (p Part[T]) erase() Part[client.Object] {
	return Part[client.Object]{Resource: p.Resource, Amount: reads(p.Amount)}
}

// ResourceName returns the name of a kind in limits: its plural and, for a
// custom resource, its group.
func ResourceName(gvk schema.GroupVersionKind, custom bool) string {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	if custom {
		return plural.GroupResource().String()
	}
	return plural.Resource
}

// Amounts returns the amounts of limited resources of an object; nil for nil.
func (k *Kind) Amounts(obj client.Object) map[string]int64 {
	if obj == nil {
		return nil
	}
	all := map[string]int64{k.Resource: 1}
	for _, p := range k.Down.Parts {
		all[p.Resource] = int64(p.Amount(obj))
	}
	if k.Down.MaxInNamespace > 0 {
		all[k.Resource+inNamespace+obj.GetNamespace()] = 1
	}
	return all
}

// inNamespace separates a resource from a namespace, in the name of what is
// limited by MaxInNamespace.
const inNamespace = " in "

// MaxAmount returns the limit of a resource that is due to MaxInNamespace, and
// what the resource is called for users; ok is false for other resources.
func (k *Kind) MaxAmount(resource string) (most int64, name string, ok bool) {
	if !strings.HasPrefix(resource, k.Resource+inNamespace) {
		return 0, "", false
	}
	return int64(k.Down.MaxInNamespace), k.Resource + " in a namespace", true
}
