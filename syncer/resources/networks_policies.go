package resources

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// maxPeers is the maximum of peers for egress in the copy of a policy. A block of
// addresses can become one for each range that its network opens.
const maxPeers = 5000

// apiserverServicePort is the port of the Service kubernetes.
const apiserverServicePort = 443

// bound bounds the copies of a tenant's policies by its networks. Policies only
// add to each other, so rules for egress would open what the policies of networks
// do not: they allow no more than the network that the policy names, and only its
// pods. Of other networks, the policy isolates pods that it selects, as any
// policy does. Rules for ingress stay as they are, since connections from other
// networks are rejected where they begin.
func (o Outside) bound(policies kinds.Down[*networkingv1.NetworkPolicy]) kinds.Down[*networkingv1.NetworkPolicy] {
	desired := policies.Desired
	policies.Network, policies.AnyNetwork = namedNetwork[*networkingv1.NetworkPolicy], true
	policies.OwnInNetworks = o.own()
	policies.Desired = func(v kinds.View, tenant *networkingv1.NetworkPolicy) (*networkingv1.NetworkPolicy, error) {
		copied, err := desired(v, tenant)
		if err != nil || len(copied.Spec.Egress) == 0 {
			return copied, err
		}
		n := v.Network(namedNetwork(tenant))
		copied.Spec.PodSelector = *selectingIn(&copied.Spec.PodSelector, n)
		if copied.Spec.Egress, err = o.within(v, n, copied.Spec.Egress); err != nil {
			return nil, err
		}
		copied.Spec.Egress = append(copied.Spec.Egress, o.always(v, tenant.Spec.Egress)...)
		return copied, nil
	}
	return policies
}

// ofAnyNetwork returns the selector of a copy without what bound has added.
func ofAnyNetwork(copied *networkingv1.NetworkPolicy) *metav1.LabelSelector {
	selector := copied.Spec.PodSelector
	last := len(selector.MatchExpressions) - 1
	if last >= 0 && semanticEqual(selector.MatchExpressions[last], inNetwork(copied.Labels[networkv1.Label])) {
		selector.MatchExpressions = selector.MatchExpressions[:last]
	}
	return &selector
}

// within returns rules for egress that allow only what a network opens.
func (o Outside) within(v kinds.View, n kinds.Network, rules []egressRule) ([]egressRule, error) {
	var bounded []egressRule
	peers := 0
	for _, rule := range rules {
		rule.To = o.peersWithin(v, n, rule.To)
		if len(rule.To) == 0 { // a rule without peers would allow all
			continue
		}
		if peers += len(rule.To); peers > maxPeers {
			return nil, fmt.Errorf("its rules for egress have more than %d peers within Network %s; "+
				"name fewer ranges, here or in spec.egress of the network", maxPeers, n.Name)
		}
		bounded = append(bounded, rule)
	}
	return bounded, nil
}

// peersWithin returns peers within a network, and outside as far as the network
// opens it. An empty list means all peers.
func (o Outside) peersWithin(v kinds.View, n kinds.Network, peers []policyPeer) []policyPeer {
	if len(peers) == 0 {
		return append([]policyPeer{podsOf(v.Tenant, n)}, o.blocks(n)...)
	}
	var within []policyPeer
	seen := map[string]bool{}
	for _, peer := range peers {
		if peer.IPBlock == nil {
			peer.PodSelector = selectingIn(cmp.Or(peer.PodSelector, &metav1.LabelSelector{}), n)
			within = append(within, peer)
			continue
		}
		for _, open := range n.Egress {
			part := intersect(*peer.IPBlock, open)
			if part == nil || seen[part.CIDR+strings.Join(part.Except, "-")] {
				continue
			}
			seen[part.CIDR+strings.Join(part.Except, "-")] = true
			if part = o.cut(*part); part != nil {
				within = append(within, policyPeer{IPBlock: part})
			}
		}
	}
	return within
}

// intersect returns the part of a block in a range; nil for none.
func intersect(block networkingv1.IPBlock, open netip.Prefix) *networkingv1.IPBlock {
	all, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
		return nil
	}
	switch {
	case !all.Overlaps(open):
		return nil
	case open.Bits() <= all.Bits():
		return &block
	}
	part := &networkingv1.IPBlock{CIDR: open.String()}
	for _, text := range block.Except {
		except, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return nil
		case !except.Overlaps(open):
		case except.Bits() <= open.Bits():
			return nil
		default:
			part.Except = append(part.Except, text)
		}
	}
	return part
}

// always returns rules for what pods of every network may reach, as far as a
// tenant's rules allow it: its own DNS, if it has one, and its apiserver.
func (o Outside) always(v kinds.View, rules []egressRule) []egressRule {
	var allowed []egressRule
	ports := allowedDNSPorts(v, rules)
	for i := range ports {
		ports[i] = portOf(*ports[i].Protocol, dnsPort)
	}
	if len(ports) > 0 {
		allowed = append(allowed, egressRule{To: []policyPeer{ownDNS(v.Tenant)}, Ports: ports})
	}
	service := netip.AddrPortFrom(v.Tenant.ServiceAddress(addresses.Apiserver), apiserverServicePort)
	for _, at := range v.Tenant.Apiservers() {
		if allowsAddress(rules, at) || allowsAddress(rules, service) {
			allowed = append(allowed, o.apiserver(at))
		}
	}
	return allowed
}

// allowsAddress reports whether rules allow TCP to an address. Selectors do not.
func allowsAddress(rules []egressRule, at netip.AddrPort) bool {
	return at.IsValid() && slices.ContainsFunc(rules, func(rule egressRule) bool {
		return allowsTCP(rule.Ports, int32(at.Port())) && (len(rule.To) == 0 ||
			slices.ContainsFunc(rule.To, func(peer policyPeer) bool { return peer.IPBlock != nil && blockHas(peer.IPBlock, at.Addr()) }))
	})
}

// allowsTCP reports whether a list of ports has a port of TCP. An empty list has
// all.
func allowsTCP(ports []policyPort, number int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p policyPort) bool {
		return ptr.Deref(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP &&
			(p.Port == nil || p.Port.StrVal == "" && p.Port.IntVal <= number && number <= ptr.Deref(p.EndPort, p.Port.IntVal))
	})
}
