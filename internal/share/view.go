package share

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

// view is a sorted list of the names of replicas among which a replica divides
// the tenants.
type view []string

// parseView is the inverse of String.
func parseView(s string) view {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// String returns the form of a view in a lease.
func (v view) String() string { return strings.Join(v, ",") }

// gives reports whether a view assigns a tenant to a replica: the one with the
// highest hash of both, so that a replica that comes or goes only affects its
// own tenants.
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

// claims are the published views of other replicas, by replica.
type claims map[string]view

// with returns the view of these replicas and one more.
func (c claims) with(replica string) view {
	all := append(slices.Collect(maps.Keys(c)), replica)
	slices.Sort(all)
	return all
}

// Shares are the tenants that a replica serves. The zero value has none.
type Shares struct {
	replica string
	view    view
	// listed is set if the leases were read after the view was published;
	// claims is their content.
	listed bool
	claims claims
}

// Keeps reports whether a tenant that the replica serves is still assigned to
// it.
func (s Shares) Keeps(vc types.NamespacedName) bool { return s.view.gives(vc, s.replica) }

// Begins reports whether the replica may begin to serve a tenant: it is
// assigned to it, and no other replica claims it.
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

// equal reports whether two shares have the same tenants.
func (s Shares) equal(t Shares) bool {
	return s.replica == t.replica && s.listed == t.listed && slices.Equal(s.view, t.view) &&
		maps.EqualFunc(s.claims, t.claims, slices.Equal[view])
}
