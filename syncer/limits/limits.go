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

// Limits are the maximum numbers of a tenant's copies in the super cluster, by
// resource, such as pods or services.nodeports. A negative number means no
// limit.
type Limits map[string]int64

// AnyResource is the key of the limit for each resource without a limit of its
// own.
const AnyResource = "*"

// ReasonLimited is the reason of the event and of the condition on an object
// that exceeds a limit.
const ReasonLimited = "LimitExceeded"

// Most returns the limit of a resource of a kind, from the first of the limits
// that has one. AnyResource does not apply to parts of a kind.
func Most(k *kinds.Kind, resource string, by ...Limits) (most int64, limited bool) {
	if most, _, own := k.MaxAmount(resource); own {
		return most, true
	}
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

// Reserve rejects a new or changed copy that would exceed a limit of the
// tenant. Otherwise it reserves the growth; release undoes that if the copy is
// not written. was is nil for a new copy. The first of the limits that has a
// resource counts.
func (u *Usage) Reserve(cluster string, k *kinds.Kind, copied, was client.Object, by ...Limits) (release func(), err error) {
	wanted := k.Amounts(copied)
	before := k.Amounts(was)
	limits := map[string]int64{}
	maps.DeleteFunc(wanted, func(resource string, amount int64) bool {
		most, limited := Most(k, resource, by...)
		limits[resource] = most
		return !limited || amount <= before[resource]
	})
	if len(wanted) == 0 {
		return func() {}, nil
	}
	key := kinds.ObjectKey{Kind: k.Name, Key: client.ObjectKeyFromObject(copied)}
	if resource := u.reserve(cluster, key, growth{before: before, after: wanted, most: limits}); resource != "" {
		name := resource
		if _, own, ok := k.MaxAmount(resource); ok {
			name = own
		}
		return nil, pending.Reject(&plugins.RejectionError{
			Reason:  ReasonLimited,
			Message: fmt.Sprintf("no more than %d %s are allowed for this cluster", limits[resource], name),
		})
	}
	return func() { u.release(cluster, key) }, nil
}

// growth is the amounts of limited resources of one copy before and after a
// write, for those that increase, and their limits.
type growth struct{ before, after, most map[string]int64 }

// sorted returns the resources that increase.
func (g growth) sorted() []string { return slices.Sorted(maps.Keys(g.after)) }
