// Package limits bounds how many copies a tenant has in the super cluster.
package limits

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

// ReasonLimited is the reason of the event and of the condition on an object that waits for room.
const ReasonLimited = "LimitExceeded"

// most returns how much of a resource a tenant may have, by the first of the limits that says so. AnyResource does not apply to parts of
// a kind.
func most(k *kinds.Kind, resource string, by []Limits) (most int64, limited bool) {
	for _, limits := range by {
		if most, ok := limits[resource]; ok {
			return most, most >= 0
		}
		if most, ok := limits[AnyResource]; ok && resource == k.Resource {
			return most, most >= 0
		}
	}
	return 0, false
}

// Reserve rejects a new or changed copy that would exceed a limit of the tenant. Otherwise it reserves the growth, which release
// returns if the copy is not written; was is nil for a new copy. The first of the limits that has a resource counts.
func (u *Usage) Reserve(cluster string, k *kinds.Kind, copied, was client.Object, by ...Limits) (release func(), err error) {
	wanted := k.Amounts(copied)
	before := k.Amounts(was)
	limits := map[string]int64{}
	maps.DeleteFunc(wanted, func(resource string, amount int64) bool {
		most, limited := most(k, resource, by)
		limits[resource] = most
		return !limited || amount <= before[resource]
	})
	if len(wanted) == 0 {
		return func() {}, nil
	}
	key := kinds.ObjectKey{Kind: k.Name, Key: client.ObjectKeyFromObject(copied)}
	if resource := u.reserve(cluster, key, growth{before: before, after: wanted, most: limits}); resource != "" {
		return nil, pending.Reject(&plugins.RejectionError{
			Reason:  ReasonLimited,
			Message: fmt.Sprintf("no more than %d %s are allowed for this cluster", limits[resource], resource),
		})
	}
	return func() { u.release(cluster, key) }, nil
}

// growth is what one copy has of limited resources before and after a write, where it becomes more, and how much the tenant may have.
type growth struct{ before, after, most map[string]int64 }

// sorted returns the resources that grow.
func (g growth) sorted() []string { return slices.Sorted(maps.Keys(g.after)) }
