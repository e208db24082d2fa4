package share

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

// view is a list of replicas by name, sorted: those among whom a replica takes the tenants to be divided.
type view []string

// parseView reads a view as String writes it.
func parseView(s string) view {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// String is for a lease.
func (v view) String() string { return strings.Join(v, ",") }

// gives says whether a tenant is a replica's when the tenants are divided among those in view: the one with the highest hash of
// both has it, so that a replica that comes or goes moves no tenants but its own.
func (v view) gives(vc types.NamespacedName, replica string) bool {
	if len(v) == 0 {
		return false
	}
	peers := make([]sharder.PeerInfo, len(v))
	for i, id := range v {
		peers[i].ID = id
	}
	return sharder.NewHRW().ShouldOwn(vc.String(), peers, sharder.PeerInfo{ID: replica})
}

// claims are the views that other replicas have published, by replica.
type claims map[string]view

// with is the view of those replicas and one more.
func (c claims) with(replica string) view {
	all := append(slices.Collect(maps.Keys(c)), replica)
	slices.Sort(all)
	return all
}

// Shares says which tenants are a replica's. Those of the zero value are none.
type Shares struct {
	replica string
	view    view
	// listed: the leases were read after the view was published, and claims is what they said.
	listed bool
	claims claims
}

// Keeps says whether a tenant that is served stays so.
func (s Shares) Keeps(vc types.NamespacedName) bool { return s.view.gives(vc, s.replica) }

// Begins says whether a tenant that is not served is to be: it is ours, and no other replica claims it.
func (s Shares) Begins(vc types.NamespacedName) bool {
	if !s.listed || !s.Keeps(vc) {
		return false
	}
	for other, view := range s.claims {
		if view.gives(vc, other) {
			return false
		}
	}
	return true
}

// equal says whether two shares give the same tenants.
func (s Shares) equal(t Shares) bool {
	return s.replica == t.replica && s.listed == t.listed && slices.Equal(s.view, t.view) &&
		maps.EqualFunc(s.claims, t.claims, slices.Equal[view])
}
