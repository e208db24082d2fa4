package kinds

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part is something that objects of a kind have a number of, and that is limited beside the objects themselves.
type Part[T client.Object] struct {
	// Resource is its name, such as services.nodeports.
	Resource string
	// Amount is how much of it an object has.
	Amount func(obj T) int
}

func (p Part[T]) erase() Part[client.Object] {
	return Part[client.Object]{Resource: p.Resource, Amount: reads(p.Amount)}
}

// ResourceName returns the name of a kind in limits: its plural, with the group of a custom resource.
func ResourceName(gvk schema.GroupVersionKind, custom bool) string {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	if custom {
		return plural.GroupResource().String()
	}
	return plural.Resource
}

// Amounts returns how much an object has of what is limited; nothing for nil.
func (k *Kind) Amounts(obj client.Object) map[string]int64 {
	if obj == nil {
		return nil
	}
	all := map[string]int64{k.Resource: 1}
	for _, p := range k.Down.Parts {
		all[p.Resource] = int64(p.Amount(obj))
	}
	return all
}
