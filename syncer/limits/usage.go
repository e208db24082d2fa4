package limits

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Usage counts the copies of all tenants by the events of the super cluster,
// and those that are about to be written. Limits are thus checked without
// listing copies, and a burst does not exceed them.
type Usage struct {
	mu sync.Mutex
	// used is by cluster key and resource, reserved by cluster key.
	used     map[string]map[string]int64
	reserved map[string]map[kinds.ObjectKey]reservation
}

// staleAfter is the lifetime of a reservation without an event for its copy.
const staleAfter = time.Minute

// reservation is the growth of a copy that is being written.
type reservation struct {
	growth

	at time.Time
}

// NewUsage returns the usage of a super cluster without copies.
func NewUsage() *Usage {
	return &Usage{used: map[string]map[string]int64{}, reserved: map[string]map[kinds.ObjectKey]reservation{}}
}

// reserve reserves the growth of a copy. If that would exceed a limit, it
// reserves nothing and returns the resource.
func (u *Usage) reserve(cluster string, key kinds.ObjectKey, g growth) (exceeded string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	pending := map[string]int64{}
	for other, r := range u.reserved[cluster] {
		if other == key || now.Sub(r.at) > staleAfter {
			delete(u.reserved[cluster], other)
			continue
		}
		for resource, after := range r.after {
			pending[resource] += after - r.before[resource]
		}
	}
	for _, resource := range g.sorted() {
		more := g.after[resource] - g.before[resource]
		if u.used[cluster][resource]+pending[resource]+more > g.most[resource] {
			return resource
		}
	}
	if u.reserved[cluster] == nil {
		u.reserved[cluster] = map[kinds.ObjectKey]reservation{}
	}
	u.reserved[cluster][key] = reservation{g, now}
	return ""
}

// release deletes a reservation.
func (u *Usage) release(cluster string, key kinds.ObjectKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.reserved[cluster], key)
}

// Observe counts an event of the super cluster: was is nil for a new object,
// now is nil for a deleted one.
func (u *Usage) Observe(k *kinds.Kind, was, now client.Object) {
	before, after := clusterOf(was), clusterOf(now)
	if was != nil && now != nil && before == after && len(k.Down.Parts) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lockedAdd(before, k.Amounts(was), -1)
	u.lockedAdd(after, k.Amounts(now), +1)
	if now == nil {
		delete(u.reserved[before], kinds.ObjectKey{Kind: k.Name, Key: client.ObjectKeyFromObject(was)})
		return
	}
	key := kinds.ObjectKey{Kind: k.Name, Key: client.ObjectKeyFromObject(now)}
	if r, ok := u.reserved[after][key]; ok && r.coveredBy(k.Amounts(now)) {
		delete(u.reserved[after], key)
	}
}

// lockedAdd adds amounts to the usage of a cluster, or subtracts them.
func (u *Usage) lockedAdd(cluster string, amounts map[string]int64, sign int64) {
	if cluster == "" {
		return
	}
	for resource, amount := range amounts {
		if amount == 0 {
			continue
		}
		if u.used[cluster] == nil {
			u.used[cluster] = map[string]int64{}
		}
		if u.used[cluster][resource] += sign * amount; u.used[cluster][resource] == 0 {
			delete(u.used[cluster], resource)
		}
	}
	if len(u.used[cluster]) == 0 {
		delete(u.used, cluster)
	}
}

// coveredBy reports whether the amounts of a copy reach the reservation.
func (r reservation) coveredBy(amounts map[string]int64) bool {
	for resource, after := range r.after {
		if amounts[resource] < after {
			return false
		}
	}
	return true
}

// Forget deletes the counts of a resource that is no longer watched.
func (u *Usage) Forget(resource string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for cluster, used := range u.used {
		if delete(used, resource); len(used) == 0 {
			delete(u.used, cluster)
		}
	}
}

// clusterOf returns the cluster key of the tenant that a copy belongs to; empty
// for nil and for an object that is not a copy, such as a tenant's root
// namespace.
func clusterOf(obj client.Object) string {
	if obj == nil {
		return ""
	}
	origin := translate.OriginOf(obj)
	if origin.UID == "" {
		return ""
	}
	return origin.Cluster
}
