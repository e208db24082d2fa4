package engine

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

// Limits are how many copies a tenant may have in the super cluster, by resource, such as pods or services.nodeports. A negative number is
// no limit.
type Limits map[string]int64

// AnyResource has the limit of each resource that has none of its own.
const AnyResource = "*"

// reasonLimited is the reason of the event and of the condition on an object that waits for room.
const reasonLimited = "LimitExceeded"

// limit returns how much of a resource the tenant may have. AnyResource does not apply to parts of a kind.
func (s *session) limit(k *kinds.Kind, resource string) (most int64, limited bool) {
	own := s.identity().Policy.Limits
	for _, limits := range []Limits{own, s.limits} {
		if most, ok := limits[resource]; ok {
			return most, most >= 0
		}
		if most, ok := limits[AnyResource]; ok && resource == k.Resource {
			return most, most >= 0
		}
	}
	return 0, false
}

// reserve rejects a new or changed copy that would exceed a limit of the tenant. Otherwise it reserves the growth, which release
// returns if the copy is not written; was is nil for a new copy.
func (s *session) reserve(k *kinds.Kind, copied, was client.Object) (release func(), err error) {
	wanted := k.Amounts(copied)
	before := k.Amounts(was)
	limits := map[string]int64{}
	maps.DeleteFunc(wanted, func(resource string, amount int64) bool {
		most, limited := s.limit(k, resource)
		limits[resource] = most
		return !limited || amount <= before[resource]
	})
	if len(wanted) == 0 {
		return func() {}, nil
	}
	key := kinds.ObjectKey{Kind: k.Name, Key: client.ObjectKeyFromObject(copied)}
	if resource := s.usage.reserve(s.lane(), key, growth{before: before, after: wanted, most: limits}); resource != "" {
		return nil, pending.Reject(&plugins.RejectionError{
			Reason:  reasonLimited,
			Message: fmt.Sprintf("no more than %d %s are allowed for this cluster", limits[resource], resource),
		})
	}
	return func() { s.usage.release(s.lane(), key) }, nil
}

// freed enqueues an object that waits for room, after a copy of its kind has gone.
func (s *session) freed(k *kinds.Kind) {
	if key, ok := s.held.Any(k.Name); ok {
		s.enqueue(s.request(k, key), priorityNormal)
	}
}

// growth is what one copy has of limited resources before and after a write, where it becomes more, and how much the tenant may have.
type growth struct{ before, after, most map[string]int64 }

// sorted returns the resources that grow.
func (g growth) sorted() []string { return slices.Sorted(maps.Keys(g.after)) }
