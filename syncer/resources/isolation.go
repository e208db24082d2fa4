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

// PodRanges are all addresses that the super cluster's pods have. What is in none of them is no pod. Of an IP family that has no range
// here, every address may be a pod's.
type PodRanges []netip.Prefix

type ingressRule = networkingv1.NetworkPolicyIngressRule

// ParsePodRanges reads ranges.
func ParsePodRanges(texts []string) (PodRanges, error) {
	var ranges PodRanges
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

// isolation lets nobody in. Policies add to each other, so who comes in is whom another one names, and none names other tenants' pods.
func isolation(v kinds.View) *networkingv1.NetworkPolicy {
	if v.Tenant.Policy.AllowTrafficFromTenants {
		return nil
	}
	return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
}

// byDefault lets in everybody but other tenants' pods, where the tenant's own policies say nothing: it would take their effect away.
func (r PodRanges) byDefault(v kinds.View) *networkingv1.NetworkPolicy {
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

// policies are the copies of a tenant's NetworkPolicies in a namespace, as far as pods and other policies depend on them.
type policies struct {
	count int
	// ingress has the compiled pod selectors of policies for ingress.
	ingress []labels.Selector
}

// digestPolicies digests the policies of a namespace.
func digestPolicies(copies []*networkingv1.NetworkPolicy) any {
	digest := policies{count: len(copies)}
	for _, policy := range copies {
		if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector); err == nil {
			digest.ingress = append(digest.ingress, selector)
		}
	}
	return digest
}

// policiesOf returns the digest of the policies of a namespace.
func policiesOf(v kinds.View) policies {
	digest, _ := v.Digest(networkPolicyKind).(policies)
	return digest
}

// saysWhoComesIn reports whether a copy of the tenant's policies limits ingress to a pod with these labels.
func saysWhoComesIn(v kinds.View, pod map[string]string) bool {
	copied := labels.Set(v.Tenant.PodLabels(pod))
	return slices.ContainsFunc(policiesOf(v).ingress, func(selector labels.Selector) bool { return selector.Matches(copied) })
}

// noTenants are all peers but other tenants' pods: the tenant's own, those of namespaces that are no tenant's, and what is no pod.
func (r PodRanges) noTenants(t translate.Tenant) []networkingv1.NetworkPolicyPeer {
	peers := []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: t.NamespaceSelector(&metav1.LabelSelector{})},
		{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: names.VCName, Operator: metav1.LabelSelectorOpDoesNotExist},
		}}},
	}
	for _, everything := range []string{"0.0.0.0/0", "::/0"} {
		if block := r.withoutPods(networkingv1.IPBlock{CIDR: everything}); block != nil {
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: block})
		}
	}
	return peers
}

// withoutTenants are a tenant's rules of whom to let in, without other tenants' pods.
func (r PodRanges) withoutTenants(t translate.Tenant, rules []ingressRule) []ingressRule {
	if t.Policy.AllowTrafficFromTenants {
		return rules
	}
	var narrowed []ingressRule
	for _, rule := range rules {
		rule.From = r.narrow(t, rule.From)
		if len(rule.From) > 0 { // a rule for nobody would be one for everybody
			narrowed = append(narrowed, rule)
		}
	}
	return narrowed
}

// narrow is a list of peers without other tenants' pods. No list is one of everybody.
func (r PodRanges) narrow(t translate.Tenant, peers []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer {
	if len(peers) == 0 {
		return r.noTenants(t)
	}
	var narrowed []networkingv1.NetworkPolicyPeer
	for _, peer := range peers {
		if peer.IPBlock != nil {
			peer.IPBlock = r.withoutPods(*peer.IPBlock)
		}
		if peer.IPBlock != nil || peer.PodSelector != nil || peer.NamespaceSelector != nil {
			narrowed = append(narrowed, peer)
		}
	}
	return narrowed
}

// withoutPods is what of an address block is no pod's; nil if that is nothing, or if nobody knows.
func (r PodRanges) withoutPods(block networkingv1.IPBlock) *networkingv1.IPBlock {
	all, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
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
