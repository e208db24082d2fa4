package egress

import (
	"fmt"
	"net/netip"
	"slices"
)

// Policy says what tenants' apiservers may connect to: the pods of their own
// tenant, vn-agent, and what an admin allows.
type Policy struct {
	// Directory knows the holders of addresses in the super cluster.
	Directory Directory
	// Outside are the addresses outside of the super cluster that every
	// tenant's apiserver may connect to.
	Outside []netip.Prefix
	// Internal are the super cluster's networks of pods and Services. Being in
	// Outside does not open them.
	Internal []netip.Prefix
	// Agent is the host and port of vn-agent as tenants are configured with it;
	// empty without one.
	Agent string
	// Machine returns the addresses of this machine. No tenant's apiserver
	// connects to them: the other control planes and the platform's own
	// processes listen there.
	Machine func() ([]netip.Addr, error)
	// Metrics count what was refused; nil for none.
	Metrics *Metrics
}

// NewPolicy makes a policy of networks in CIDR notation: those outside of the
// super cluster that an admin allows, and those of its pods and Services. It has
// no Directory yet.
func NewPolicy(outside, internal []string) (*Policy, error) {
	allowed, err := ParseOutside(outside)
	if err != nil {
		return nil, fmt.Errorf("--tenant-egress-cidr: %w", err)
	}
	closed, err := parseInternal(internal)
	if err != nil {
		return nil, err
	}
	return &Policy{Outside: allowed, Internal: closed, Machine: Machine}, nil
}

// parseInternal reads the networks of the super cluster's pods and Services.
func parseInternal(cidrs []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("--internal-cidr has %q: it must be a network in CIDR notation, such as 10.0.0.0/8", cidr)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// Directory knows the holders of addresses in the super cluster. Objects in
// tenants' control planes do not count.
type Directory interface {
	// Holder returns the holder of an address.
	Holder(address netip.Addr) Holder
}

// Holder is what an address of the super cluster belongs to.
type Holder struct {
	// Node reports whether a node has the address, or a pod in its node's
	// network.
	Node bool
	// Pods are the cluster keys of the tenants whose pods have the address;
	// empty for a pod of no tenant.
	Pods []string
}

// Reason is why a connection is refused; empty if it is not.
type Reason string

// Reasons, also the values of a label of the metric.
const (
	// Reserved is an address that is never another host's, or one that leads to
	// a cloud's metadata.
	Reserved Reason = "reserved"
	// Platform is an address of this machine, or of a node.
	Platform Reason = "platform"
	// Foreign is an address of the super cluster that no pod of the tenant has.
	Foreign Reason = "foreign"
	// Outside is an address outside of the super cluster that no admin has
	// allowed.
	Outside Reason = "outside"
	// Unresolved is a name that cannot be resolved, or may not be.
	Unresolved Reason = "unresolved"
	// NoAgent is a kubelet's address that is not vn-agent's.
	NoAgent Reason = "no_agent"
	// Loopback is an address that is not the apiserver's own, where it connects
	// to itself.
	Loopback Reason = "not_itself"
)

// decide returns why a tenant's apiserver may not connect to an address; empty
// if it may.
func (p *Policy) decide(tenant string, to netip.Addr) Reason {
	to = actual(to)
	if isReserved(to) {
		return Reserved
	}
	holder := p.Directory.Holder(to)
	switch {
	case holder.Node || isOf(p.Machine, to):
		return Platform
	case len(holder.Pods) > 0 && !slices.ContainsFunc(holder.Pods, func(key string) bool { return key != tenant }):
		return ""
	case len(holder.Pods) > 0 || contains(p.Internal, to):
		return Foreign
	case !contains(p.Outside, to):
		return Outside
	}
	return ""
}

func contains(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}
