package engine

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// Limits are how many copies a tenant may have in the super cluster, by resource, such as pods or services.nodeports. A negative number is
// no limit.
type Limits map[string]int64

// AnyResource has the limit of each resource that has none of its own.
const AnyResource = "*"

// reasonLimited is the reason of the event and of the condition on an object that waits for room.
const reasonLimited = "LimitExceeded"

// Part is something that objects of a kind have a number of, and that is limited beside the objects themselves.
type Part[T client.Object] struct {
	// Resource is its name, such as services.nodeports.
	Resource string
	// Amount is how much of it an object has.
	Amount func(obj T) int
}

// part is a Part with its type erased.
type part struct {
	resource string
	amount   func(client.Object) int
}

func (p Part[T]) erase() part {
	return part{p.Resource, func(obj client.Object) int { return p.Amount(obj.(T)) }}
}

// resourceName returns the name of a kind in limits: its plural, with the group of a custom resource.
func resourceName(gvk schema.GroupVersionKind, custom bool) string {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	if custom {
		return plural.GroupResource().String()
	}
	return plural.Resource
}

// amounts returns how much an object has of what is limited; nothing for nil.
func (k *kind) amounts(obj client.Object) map[string]int64 {
	if obj == nil {
		return nil
	}
	all := map[string]int64{k.resource: 1}
	for _, p := range k.down.parts {
		all[p.resource] = int64(p.amount(obj))
	}
	return all
}

// limit returns how much of a resource the tenant may have. AnyResource does not apply to parts of a kind.
func (s *session) limit(k *kind, resource string) (most int64, limited bool) {
	own := s.identity().Policy.Limits
	for _, limits := range []Limits{own, s.limits} {
		if most, ok := limits[resource]; ok {
			return most, most >= 0
		}
		if most, ok := limits[AnyResource]; ok && resource == k.resource {
			return most, most >= 0
		}
	}
	return 0, false
}

// reserve rejects a new or changed copy that would exceed a limit of the tenant. Otherwise it reserves the growth, which release
// returns if the copy is not written; was is nil for a new copy.
func (s *session) reserve(k *kind, copied, was client.Object) (release func(), err error) {
	wanted := k.amounts(copied)
	before := k.amounts(was)
	limits := map[string]int64{}
	maps.DeleteFunc(wanted, func(resource string, amount int64) bool {
		most, limited := s.limit(k, resource)
		limits[resource] = most
		return !limited || amount <= before[resource]
	})
	if len(wanted) == 0 {
		return func() {}, nil
	}
	key := objectKey{k.name, client.ObjectKeyFromObject(copied)}
	if resource := s.usage.reserve(s.lane(), key, growth{before: before, after: wanted, most: limits}); resource != "" {
		return nil, refusal{&plugins.RejectionError{
			Reason:  reasonLimited,
			Message: fmt.Sprintf("no more than %d %s are allowed for this cluster", limits[resource], resource),
		}}
	}
	return func() { s.usage.release(s.lane(), key) }, nil
}

// freed enqueues an object that waits for room, after a copy of its kind has gone.
func (s *session) freed(k *kind) {
	if key, ok := s.held.any(k.name); ok {
		s.enqueue(s.request(k, key), priorityNormal)
	}
}

// growth is what one copy has of limited resources before and after a write, where it becomes more, and how much the tenant may have.
type growth struct{ before, after, most map[string]int64 }

// sorted returns the resources that grow.
func (g growth) sorted() []string { return slices.Sorted(maps.Keys(g.after)) }
