package resources

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Outside knows which addresses are outside of the super cluster. If one of the
// ranges is unknown for an IP family, no address of the family is.
type Outside struct {
	// Pods are all address ranges of the super cluster's pods.
	Pods Ranges
	// Internal are the address ranges of its nodes, control planes and stores.
	Internal Ranges
}

type (
	egressRule = networkingv1.NetworkPolicyEgressRule
	policyPeer = networkingv1.NetworkPolicyPeer
	policyPort = networkingv1.NetworkPolicyPort
)

// own returns the policies that keep the networks of a tenant apart. A pod
// connects to nothing, except for what the policy of its network allows: as a
// connection takes both ends, it is enough that it is rejected where it begins.
func (o Outside) own() *kinds.OwnInNetworks[*networkingv1.NetworkPolicy] {
	egress := []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	return &kinds.OwnInNetworks[*networkingv1.NetworkPolicy]{
		Closed: kinds.Own[*networkingv1.NetworkPolicy]{
			Name: names.EgressPolicy,
			Desired: func(kinds.View) *networkingv1.NetworkPolicy {
				return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: egress}}
			},
		},
		Suffix: names.NetworkEgressPolicy,
		Desired: func(v kinds.View, n kinds.Network) *networkingv1.NetworkPolicy {
			return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					inNetwork(n.Name), {Key: names.OwnEgress, Operator: metav1.LabelSelectorOpDoesNotExist},
				}},
				PolicyTypes: egress,
				Egress:      o.reached(v.Tenant, n),
			}}
		},
	}
}

// reached returns rules that allow all that pods of a network may connect to.
func (o Outside) reached(t translate.Tenant, n kinds.Network) []egressRule {
	rules := []egressRule{
		{To: []policyPeer{podsOf(t, n)}},
		{To: []policyPeer{vcDNS()}, Ports: []policyPort{{Protocol: new(corev1.ProtocolUDP)}, {Protocol: new(corev1.ProtocolTCP)}}},
		{To: []policyPeer{ownDNS(t)}, Ports: []policyPort{portOf(corev1.ProtocolUDP, dnsPort), portOf(corev1.ProtocolTCP, dnsPort)}},
	}
	for _, at := range t.Apiservers() {
		rules = append(rules, o.apiserver(at))
	}
	if blocks := o.blocks(n); len(blocks) > 0 {
		rules = append(rules, egressRule{To: blocks})
	}
	return rules
}

// podsOf returns the pods of a network in all namespaces of the tenant.
func podsOf(t translate.Tenant, n kinds.Network) policyPeer {
	return policyPeer{
		NamespaceSelector: t.NamespaceSelector(&metav1.LabelSelector{}),
		PodSelector:       selectingIn(&metav1.LabelSelector{}, n),
	}
}

// selectingIn returns a selector that selects only pods of a network.
func selectingIn(selector *metav1.LabelSelector, n kinds.Network) *metav1.LabelSelector {
	selector = selector.DeepCopy()
	selector.MatchExpressions = append(selector.MatchExpressions, inNetwork(n.Name))
	return selector
}

// inNetwork returns the requirement that copies of pods in a network have.
func inNetwork(name string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: networkv1.Label, Operator: metav1.LabelSelectorOpIn, Values: []string{name}}
}

// ownDNS returns the pods of a tenant's DNS, for a tenant that has one of its
// own, in whichever network they are.
func ownDNS(t translate.Tenant) policyPeer {
	return policyPeer{
		NamespaceSelector: t.NamespaceSelector(&metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem},
		}),
		PodSelector: t.PodSelector(&metav1.LabelSelector{MatchLabels: map[string]string{dnsPodLabel: dnsPodsValue}}),
	}
}

// apiserver returns a rule that allows the tenant's apiserver, at exactly one
// port: others at its address are not the tenant's.
func (o Outside) apiserver(at netip.AddrPort) egressRule {
	rule := egressRule{
		To:    []policyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(at.Addr(), at.Addr().BitLen()).String()}}},
		Ports: []policyPort{portOf(corev1.ProtocolTCP, int32(at.Port()))},
	}
	if o.Pods.contain(at.Addr()) {
		// Networks may select pods by labels only, and not by addresses.
		rule.To = append(rule.To, platformPods(vcHostValue))
	}
	return rule
}

// contain reports whether one of the ranges has an address.
func (r Ranges) contain(address netip.Addr) bool {
	return slices.ContainsFunc(r, func(p netip.Prefix) bool { return p.Contains(address) })
}

// portOf returns a port of a rule.
func portOf(protocol corev1.Protocol, port int32) policyPort {
	return policyPort{Protocol: &protocol, Port: new(intstr.FromInt32(port))}
}

// blocks returns the addresses outside that a network opens.
func (o Outside) blocks(n kinds.Network) []policyPeer {
	var blocks []policyPeer
	for _, open := range n.Egress {
		if block := o.cut(networkingv1.IPBlock{CIDR: open.String()}); block != nil {
			blocks = append(blocks, policyPeer{IPBlock: block})
		}
	}
	return blocks
}

// cut returns the part of a block that is outside; nil for none.
func (o Outside) cut(block networkingv1.IPBlock) *networkingv1.IPBlock {
	rest := &block
	for _, ranges := range []Ranges{o.Pods, o.Internal, addresses.Metadata()} {
		if rest = ranges.cutFrom(*rest); rest == nil {
			return nil
		}
	}
	return rest
}
