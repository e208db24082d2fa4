package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// byLabels returns a selector by labels.
func byLabels(pairs ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for i := 0; i < len(pairs); i += 2 {
		metav1.AddLabelToSelector(s, pairs[i], pairs[i+1])
	}
	return s
}

// ofBlue returns a selector by labels among blue's namespaces.
func ofBlue(pairs ...string) *metav1.LabelSelector {
	return byLabels(append(pairs, "tenancy.x-k8s.io/vcname", "blue", "tenancy.x-k8s.io/vcnamespace", "team")...)
}

// policy returns a policy with a peer in both directions.
func policy(peer networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: meta("web"), Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{peer}}},
		Egress:  []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{peer}}},
	}}
}

func TestNetworkPolicyPeers(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, NetworkPolicy(pods))
	type peer = networkingv1.NetworkPolicyPeer
	tests := map[string]struct{ tenant, want peer }{
		"pods of the same namespace": {
			peer{PodSelector: byLabels("app", "web")}, peer{PodSelector: byLabels("app", "web")},
		},
		"all namespaces are all of the tenant's": {
			peer{NamespaceSelector: byLabels()}, peer{NamespaceSelector: ofBlue()},
		},
		"pods of namespaces": {
			peer{PodSelector: byLabels("app", "web"), NamespaceSelector: byLabels("team", "shop")},
			peer{PodSelector: byLabels("app", "web"), NamespaceSelector: ofBlue("labels.tenancy.x-k8s.io/team", "shop")},
		},
		"a namespace by its name": {
			peer{NamespaceSelector: byLabels("kubernetes.io/metadata.name", "shop")},
			peer{NamespaceSelector: ofBlue("kubernetes.io/metadata.name", "team-71a1c3-blue-shop")},
		},
		"by labels that mean something to the super cluster, which has them under other keys": {
			peer{
				PodSelector: byLabels("kubernetes.io/metadata.name", "x", "example.com/tier", "front"),
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					requirement("pod-security.kubernetes.io/enforce", metav1.LabelSelectorOpNotIn, "privileged"),
				}},
			},
			peer{
				PodSelector: byLabels("labels.tenancy.x-k8s.io/kubernetes.io_metadata.name", "x", "labels.tenancy.x-k8s.io/example.com_tier", "front"),
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: ofBlue().MatchLabels, MatchExpressions: []metav1.LabelSelectorRequirement{
					requirement("labels.tenancy.x-k8s.io/pod-security.kubernetes.io_enforce", metav1.LabelSelectorOpNotIn, "privileged"),
				}},
			},
		},
		"addresses that are not pods": {
			peer{IPBlock: &networkingv1.IPBlock{CIDR: "198.51.0.0/16", Except: []string{"198.51.100.0/24"}}},
			peer{IPBlock: &networkingv1.IPBlock{CIDR: "198.51.0.0/16", Except: []string{"198.51.100.0/24"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := k.Desired(view, policy(tt.tenant))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(policy(tt.want).Spec, got.Spec); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNetworkPolicyGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, NetworkPolicy(pods))
	tenant := &networkingv1.NetworkPolicy{ObjectMeta: meta("web"), Spec: networkingv1.NetworkPolicySpec{
		PodSelector: *byLabels("app", "web"),
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(80)), EndPort: new(int32(90))}},
		}},
	}}
	tenant.Spec.Ingress[0].From = []networkingv1.NetworkPolicyPeer{{PodSelector: byLabels("app", "front")}}
	super := &networkingv1.NetworkPolicy{ObjectMeta: superMeta("web"), Spec: policy(networkingv1.NetworkPolicyPeer{}).Spec}
	desired, err := k.Desired(view, tenant)
	if err != nil {
		t.Fatal(err)
	}
	k.Merge(super, desired)
	if diff := cmp.Diff(tenant.Spec, super.Spec); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

// TestNetworkPolicyThatWouldNotBeEnforced checks that selectors by labels that
// no copy has are rejected.
func TestNetworkPolicyThatWouldNotBeEnforced(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, NetworkPolicy(pods))
	opaque := view
	opaque.Tenant.Opaque = []string{"internal.example.com/"}
	forPods := policy(networkingv1.NetworkPolicyPeer{})
	forPods.Spec.PodSelector = *byLabels("internal.example.com/tier", "front")
	tests := map[string]struct {
		tenant *networkingv1.NetworkPolicy
		label  string
	}{
		"the pods that it is for": {forPods, "internal.example.com/tier"},
		"pods of a peer": {
			policy(networkingv1.NetworkPolicyPeer{PodSelector: byLabels("internal.example.com/tier", "front")}), "internal.example.com/tier",
		},
		"namespaces": {
			policy(networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "internal.example.com/tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"front"}},
			}}}),
			"internal.example.com/tier",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := k.Desired(opaque, tt.tenant); err == nil || !strings.Contains(err.Error(), tt.label) {
				t.Errorf("desired is %v with error %v, which does not name %s", got, err, tt.label)
			}
		})
	}
}

// TestNetworkPolicyKeepsTenantsApart checks that every peer of a tenant only
// selects pods in its own namespaces.
func TestNetworkPolicyKeepsTenantsApart(t *testing.T) {
	k := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, NetworkPolicy(pods))
	green := translate.Tenant{Key: "team-c57de1-green", Name: "green", Namespace: "team"}
	labelsOf := func(t translate.Tenant, namespace string) labels.Set {
		ns := Namespace().(kinds.Down[*corev1.Namespace])
		super := t.Down("Namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"team": "shop"}}},
			ns.SuperKey(t, client.ObjectKey{Name: namespace}))
		super.Labels["kubernetes.io/metadata.name"] = super.Name
		return super.Labels
	}
	for name, tt := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"all":                     {byLabels(), true},
		"by a label":              {byLabels("team", "shop"), true},
		"by another label":        {byLabels("team", "till"), false},
		"by name":                 {byLabels("kubernetes.io/metadata.name", "shop"), true},
		"by another name":         {byLabels("kubernetes.io/metadata.name", "till"), false},
		"by the super cluster's":  {byLabels("kubernetes.io/metadata.name", "team-c57de1-green-shop"), false},
		"by name, of the other's": {byLabels("kubernetes.io/metadata.name", "green-shop"), false},
	} {
		t.Run(name, func(t *testing.T) {
			copied, err := k.Desired(view, policy(networkingv1.NetworkPolicyPeer{NamespaceSelector: tt.selector}))
			if err != nil {
				t.Fatal(err)
			}
			for _, peer := range []networkingv1.NetworkPolicyPeer{copied.Spec.Ingress[0].From[0], copied.Spec.Egress[0].To[0]} {
				s, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.Matches(labelsOf(blue, "shop")); got != tt.want {
					t.Errorf("%v selects the tenant's namespace: %t, want %t", s, got, tt.want)
				}
				if s.Matches(labelsOf(green, "shop")) {
					t.Errorf("%v selects another tenant's namespace", s)
				}
			}
		})
	}
}
