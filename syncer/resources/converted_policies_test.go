package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/converted"
)

// ownPolicy returns a policy of a converted tenant for ingress, as it is in the
// super cluster, with peers.
func ownPolicy(name string, selector *metav1.LabelSelector, peers ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	selector.MatchExpressions = append(selector.MatchExpressions,
		metav1.LabelSelectorRequirement{Key: "tenancy.x-k8s.io/converted", Operator: metav1.LabelSelectorOpDoesNotExist})
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: *selector, PolicyTypes: []networkingv1.PolicyType{"Ingress"},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers}},
	}}
}

// byName returns the specs of policies.
func byName(policies []*networkingv1.NetworkPolicy) map[string]networkingv1.NetworkPolicySpec {
	specs := map[string]networkingv1.NetworkPolicySpec{}
	for _, policy := range policies {
		specs[policy.Name] = policy.Spec
	}
	return specs
}

func TestConvertedPolicies(t *testing.T) {
	all := append([]networkingv1.NetworkPolicyPeer{own, platform}, outside...)
	admits := func(selector *metav1.LabelSelector, peers ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicySpec {
		spec := networkingv1.NetworkPolicySpec{PodSelector: *selector, PolicyTypes: []networkingv1.PolicyType{"Ingress"}}
		if len(peers) > 0 {
			spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers}}
		}
		return spec
	}
	isolates := admits(byLabels())
	elsewhere := func() networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: byLabels("tenancy.x-k8s.io/converted", "another")}
	}
	ofTenant := networkingv1.NetworkPolicyPeer{NamespaceSelector: byLabels("tenancy.x-k8s.io/converted", view.Tenant.Key)}
	without := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: "NotIn", Values: []string{value}}}}
	}
	const a, b = "tenant-own-ca978112ca.tenancy.x-k8s.io", "tenant-own-3e23e81600.tenancy.x-k8s.io"
	for name, tt := range map[string]struct {
		own  []*networkingv1.NetworkPolicy
		want map[string]networkingv1.NetworkPolicySpec
	}{
		"none of its own": {nil, map[string]networkingv1.NetworkPolicySpec{
			"tenant-isolation.tenancy.x-k8s.io": isolates, "tenant-default.tenancy.x-k8s.io": admits(byLabels(), all...),
		}},
		"one that admits everything": {
			[]*networkingv1.NetworkPolicy{ownPolicy("a", byLabels())},
			map[string]networkingv1.NetworkPolicySpec{"tenant-isolation.tenancy.x-k8s.io": isolates, a: admits(byLabels(), all...)},
		},
		"pods by their labels, from another tenant by an error of the gateway, and from pods by address": {
			[]*networkingv1.NetworkPolicy{ownPolicy("a", byLabels("app", "web"), elsewhere(), block("10.244.7.0/24"), block("10.0.0.0/8"))},
			map[string]networkingv1.NetworkPolicySpec{
				"tenant-isolation.tenancy.x-k8s.io": isolates,
				"tenant-default.tenancy.x-k8s.io":   admits(without("app", "web"), all...),
				a:                                   admits(byLabels("app", "web"), ofTenant, block("10.0.0.0/8", "10.244.0.0/16", "10.245.0.0/16")),
			},
		},
		"what one selector cannot express": {
			[]*networkingv1.NetworkPolicy{ownPolicy("b", byLabels("app", "web", "tier", "front"), block("10.244.7.0/24"))},
			map[string]networkingv1.NetworkPolicySpec{
				"tenant-isolation.tenancy.x-k8s.io": isolates,
				"tenant-default.tenancy.x-k8s.io":   admits(without("app", "web"), all...),
				"tenant-default-1.tenancy.x-k8s.io": admits(without("tier", "front"), all...),
				b:                                   admits(byLabels("app", "web", "tier", "front")),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := byName(pods.ConvertedPolicies(view.Tenant, tt.own))
			for name, spec := range got { // an empty list is none
				if len(spec.PodSelector.MatchExpressions) == 0 {
					spec.PodSelector.MatchExpressions = nil
				}
				got[name] = spec
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConvertedEgress: a policy for egress alone leaves the default as it is.
func TestConvertedEgress(t *testing.T) {
	policy := ownPolicy("a", byLabels())
	policy.Spec.PolicyTypes, policy.Spec.Ingress = []networkingv1.PolicyType{"Egress"}, nil
	got := byName(pods.ConvertedPolicies(view.Tenant, []*networkingv1.NetworkPolicy{policy}))
	if _, ok := got["tenant-default.tenancy.x-k8s.io"]; !ok || len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

// TestConvertedIsolation: vc-manager and vc-gateway create what the syncer keeps.
func TestConvertedIsolation(t *testing.T) {
	created := converted.Isolation("super", nil)
	if diff := cmp.Diff(created.Spec, byName(pods.ConvertedPolicies(view.Tenant, nil))[created.Name]); diff != "" {
		t.Errorf("policies (-created +kept):\n%s", diff)
	}
}
