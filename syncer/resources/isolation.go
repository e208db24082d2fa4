package resources

import (
	"fmt"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Ranges are all address ranges of something, such as the super cluster's pods.
// An address outside of them is not a pod's. For an IP family without a range,
// every address may be one.
type Ranges []netip.Prefix

type ingressRule = networkingv1.NetworkPolicyIngressRule

// ParseRanges parses address ranges.
func ParseRanges(texts []string) (Ranges, error) {
	var ranges Ranges
	for _, text := range texts {
		parsed, err := netip.ParsePrefix(text)
		if err != nil || parsed.Bits() == 0 {
			return nil, fmt.Errorf("%q must be a range of addresses, such as 10.244.0.0/16", text)
		}
		if parsed = parsed.Masked(); !slices.Contains(ranges, parsed) {
			ranges = append(ranges, parsed)
		}
	}
	slices.SortFunc(ranges, netip.Prefix.Compare)
	return ranges, nil
}

// isolation returns a policy that allows no ingress. Policies are additive, so
// only peers of other policies are allowed, and none of these selects pods of
// other tenants.
func isolation(v kinds.View) *networkingv1.NetworkPolicy {
	if v.Tenant.Policy.AllowTrafficFromTenants {
		return nil
	}
	return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
}

// byDefault returns a policy that allows ingress from all peers except pods of
// other tenants, for pods that the tenant's own policies do not select for
// ingress: it would defeat these.
func (r Ranges) byDefault(v kinds.View) *networkingv1.NetworkPolicy {
	policy := isolation(v)
	if policy == nil {
		return nil
	}
	policy.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: names.OwnIngress, Operator: metav1.LabelSelectorOpDoesNotExist},
	}
	policy.Spec.Ingress = []ingressRule{{From: r.noTenants(v.Tenant)}}
	return policy
}

// policies summarizes the copies of a tenant's NetworkPolicies in a namespace,
// as far as pods and other policies depend on them.
type policies struct {
	// ingress and egress have the compiled pod selectors of policies for ingress
	// and egress.
	ingress, egress []labels.Selector
}

// digestPolicies returns the digest of the policies of a namespace.
func digestPolicies(copies []*networkingv1.NetworkPolicy) any {
	var digest policies
	for _, policy := range copies {
		selector, err := metav1.LabelSelectorAsSelector(ofAnyNetwork(policy))
		if err != nil {
			continue
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			digest.ingress = append(digest.ingress, selector)
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			digest.egress = append(digest.egress, selector)
		}
	}
	return digest
}

// policiesOf returns the cached digest of the policies of a namespace.
func policiesOf(v kinds.View) policies {
	digest, _ := v.Digest(networkPolicyKind).(policies)
	return digest
}

// limitsIngress reports whether a copy of the tenant's policies limits ingress
// to a pod with these labels.
func limitsIngress(v kinds.View, pod map[string]string) bool {
	return anySelects(policiesOf(v).ingress, v, pod)
}

// limitsEgress reports whether a copy of the tenant's policies limits egress
// from a pod with these labels. It makes a difference in networks alone.
func limitsEgress(v kinds.View, pod map[string]string) bool {
	return v.Network != nil && anySelects(policiesOf(v).egress, v, pod)
}

// anySelects reports whether a selector matches the copy of a pod with these
// labels.
func anySelects(selectors []labels.Selector, v kinds.View, pod map[string]string) bool {
	copied := labels.Set(v.Tenant.PodLabels(pod))
	return slices.ContainsFunc(selectors, func(selector labels.Selector) bool { return selector.Matches(copied) })
}

// noTenants returns all peers except pods of other tenants: the tenant's own
// pods, those of namespaces that belong to no tenant, and addresses that are
// not a pod's.
func (r Ranges) noTenants(t translate.Tenant) []networkingv1.NetworkPolicyPeer {
	peers := []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: t.NamespaceSelector(&metav1.LabelSelector{})},
		{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: names.VCName, Operator: metav1.LabelSelectorOpDoesNotExist},
		}}},
	}
	for _, everything := range []string{"0.0.0.0/0", "::/0"} {
		if block := r.cutFrom(networkingv1.IPBlock{CIDR: everything}); block != nil {
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: block})
		}
	}
	return peers
}

// withoutTenants returns a tenant's ingress rules without pods of other
// tenants.
func (r Ranges) withoutTenants(t translate.Tenant, rules []ingressRule) []ingressRule {
	if t.Policy.AllowTrafficFromTenants {
		return rules
	}
	var narrowed []ingressRule
	for _, rule := range rules {
		rule.From = r.narrow(t, rule.From)
		if len(rule.From) > 0 { // a rule without peers would allow all
			narrowed = append(narrowed, rule)
		}
	}
	return narrowed
}

// narrow returns a list of peers without pods of other tenants. An empty list
// means all peers.
func (r Ranges) narrow(t translate.Tenant, peers []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer {
	if len(peers) == 0 {
		return r.noTenants(t)
	}
	var narrowed []networkingv1.NetworkPolicyPeer
	for _, peer := range peers {
		if peer.IPBlock != nil {
			peer.IPBlock = r.cutFrom(*peer.IPBlock)
		}
		if peer.IPBlock != nil || peer.PodSelector != nil || peer.NamespaceSelector != nil {
			narrowed = append(narrowed, peer)
		}
	}
	return narrowed
}

// cutFrom returns an address block without the ranges; nil if it would be empty,
// or if the ranges are unknown.
func (r Ranges) cutFrom(block networkingv1.IPBlock) *networkingv1.IPBlock {
	all, err := netip.ParsePrefix(block.CIDR)
	if err != nil || all.Addr().Is4In6() { // which may be taken for IPv4
		return nil
	}
	all, known := all.Masked(), false
	except := slices.Clone(block.Except)
	for _, pods := range r {
		if pods.Addr().Is4() != all.Addr().Is4() {
			continue
		}
		known = true
		switch {
		case pods.Bits() <= all.Bits() && pods.Contains(all.Addr()):
			return nil
		case all.Contains(pods.Addr()) && !slices.Contains(except, pods.String()):
			except = append(except, pods.String())
		}
	}
	if !known {
		return nil
	}
	return &networkingv1.IPBlock{CIDR: block.CIDR, Except: except}
}
