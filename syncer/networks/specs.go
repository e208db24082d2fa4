package networks

import (
	"context"
	"net/netip"
	"reflect"
	"sync"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

// maxEgress is the maximum of ranges of a network, as in its CRD, which a tenant
// can change for a moment.
const maxEgress = 32

// Specs are what keeps the networks of one tenant apart depends on.
type Specs struct {
	mu     sync.RWMutex
	byName map[string]kinds.Network // nil before the networks have been read
}

// Specs returns the networks of the tenant, for what keeps them apart.
func (t *Table) Specs() *Specs { return &t.specs }

// Known returns an error while the networks have not been read.
func (t *Table) Known() error {
	if !t.specs.Known() {
		return &pending.WaitingError{On: "the networks of the cluster to be read"}
	}
	return nil
}

// Network returns the network that an object names; one that reaches nothing
// outside if it does not exist.
func (t *Table) Network(named string) kinds.Network {
	name := t.Name(named)
	if n, exists := t.specs.Spec(name); exists {
		return n
	}
	return kinds.Network{Name: name}
}

// Known reports whether the networks have been read.
func (s *Specs) Known() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName != nil
}

// Spec returns a network, and false if it does not exist.
func (s *Specs) Spec(name string) (kinds.Network, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, exists := s.byName[name]
	return n, exists
}

// set replaces the networks. It returns the names of those that are others than
// before, and whether anything differs: at first, it is that they are known.
func (s *Specs) set(networks []networkv1.Network) (changed []string, differ bool) {
	byName := make(map[string]kinds.Network, len(networks))
	for i := range networks {
		n := kinds.Network{Name: networks[i].Name, Egress: openedBy(networks[i].Spec.Egress)}
		byName[n.Name] = n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range byName {
		if was, existed := s.byName[name]; !existed || !reflect.DeepEqual(was, n) {
			changed = append(changed, name)
		}
	}
	for name := range s.byName {
		if _, exists := byName[name]; !exists {
			changed = append(changed, name)
		}
	}
	differ = s.byName == nil || len(changed) > 0
	s.byName = byName
	return changed, differ
}

// openedBy returns the ranges that spec.egress of a network opens.
func openedBy(egress *networkv1.Egress) []netip.Prefix {
	if egress == nil || egress.Type == networkv1.EgressAll {
		return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	if egress.Type != networkv1.EgressCIDRs {
		return nil
	}
	var ranges []netip.Prefix
	for _, text := range egress.CIDRs[:min(len(egress.CIDRs), maxEgress)] {
		// Components that enforce policies may take a mapped address for one of IPv4.
		if cidr, err := netip.ParsePrefix(string(text)); err == nil && !cidr.Addr().Is4In6() {
			ranges = append(ranges, cidr.Masked())
		}
	}
	return ranges
}

// release deletes what keeps a deleted network apart, before the network loses
// its finalizer. While the API of networks is being deleted, pods are left.
func (s *Syncer) release(ctx context.Context, n *networkv1.Network) error {
	if n.DeletionTimestamp == nil || s.recalled {
		return nil
	}
	return s.tenant.Release(ctx, n.Name)
}
