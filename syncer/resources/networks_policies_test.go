package resources

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

const networkLabelKey = "arktos.futurewei.com/network"

// networked returns a view of a tenant whose networks open ranges, with an
// apiserver.
func networked(egress ...netip.Prefix) kinds.View {
	v := view
	v.Tenant.Endpoint, v.Tenant.ServiceCIDR = "https://192.168.7.1:6443", netip.MustParsePrefix("10.104.0.0/20")
	v.Network = func(named string) kinds.Network {
		if named == "" {
			named = "default"
		}
		return kinds.Network{Name: named, Egress: egress}
	}
	return v
}

// boundKind is the kind of policies for tenants with networks.
func boundKind(t *testing.T) kinds.Down[*networkingv1.NetworkPolicy] {
	t.Helper()
	return kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, ForNetworks([]kinds.Flow{NetworkPolicy(pods)}, outer)[0])
}

// frontPolicy is a policy of the network front with peers for egress.
func frontPolicy(ports []networkingv1.NetworkPolicyPort, peers ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	policy := egressTo("default", ports, peers...)
	policy.Labels = map[string]string{networkLabelKey: "front"}
	return policy
}

// TestWhatATenantOpensStaysInItsNetwork checks that no rule for egress of a
// tenant allows more than the network of the policy does.
func TestWhatATenantOpensStaysInItsNetwork(t *testing.T) {
	type (
		peers = []networkingv1.NetworkPolicyPeer
		rules = []networkingv1.NetworkPolicyEgressRule
		ports = []networkingv1.NetworkPolicyPort
	)
	own, apiserver := networkingv1.NetworkPolicyPeer{PodSelector: byLabels("app", "db")}, toApiserver("192.168.7.1/32", 6443)
	web := networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(80))}
	https := networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(443))}
	out := rules{{To: peers{block("198.51.100.0/24"), block("203.0.113.0/25")}}}
	toOwnDNS := func(protocols ...corev1.Protocol) networkingv1.NetworkPolicyEgressRule {
		rule := networkingv1.NetworkPolicyEgressRule{To: peers{kubeDNS}}
		for _, p := range protocols {
			rule.Ports = append(rule.Ports, atPort(p, intstr.FromInt32(53)))
		}
		return rule
	}
	opened := ranges("198.51.100.0/24", "203.0.113.0/25")
	for name, tt := range map[string]struct {
		ports  ports
		peers  peers
		egress []netip.Prefix
		want   rules
	}{
		"pods of the namespace": {peers: peers{own}, want: rules{{To: peers{{PodSelector: inFront("app", "db")}}}}},
		"pods of all namespaces": {
			peers: peers{{NamespaceSelector: byLabels()}},
			want: rules{
				{To: peers{{NamespaceSelector: ofBlue(), PodSelector: inFront()}}}, toOwnDNS(corev1.ProtocolUDP, corev1.ProtocolTCP),
			},
		},
		"pods that are in another network": {
			peers: peers{{PodSelector: byLabels(networkLabelKey, "back")}},
			want:  rules{{To: peers{{PodSelector: inFront("labels.tenancy.x-k8s.io/arktos.futurewei.com_network", "back")}}}},
		},
		"namespaces with the label of a network": {
			peers: peers{{NamespaceSelector: byLabels(networkLabelKey, "back")}},
			want: rules{{To: peers{{
				NamespaceSelector: ofBlue("labels.tenancy.x-k8s.io/arktos.futurewei.com_network", "back"), PodSelector: inFront(),
			}}}},
		},
		"everything, in a network that opens nothing": {
			want: rules{{To: peers{front}}, toOwnDNS(corev1.ProtocolUDP, corev1.ProtocolTCP), apiserver},
		},
		"everything, in a network that opens ranges": {
			egress: opened,
			want:   rules{{To: append(peers{front}, out[0].To...)}, toOwnDNS(corev1.ProtocolUDP, corev1.ProtocolTCP), apiserver},
		},
		"a port of everything": {ports: ports{web}, want: rules{{To: peers{front}, Ports: ports{web}}}},
		"the apiserver's port of everything": {
			ports: ports{https}, want: rules{{To: peers{front}, Ports: ports{https}}, apiserver},
		},
		"every address, in a network that opens nothing": {
			peers: peers{block("0.0.0.0/0")}, want: rules{toOwnDNS(corev1.ProtocolUDP, corev1.ProtocolTCP), apiserver},
		},
		"every address, in a network that opens ranges": {
			peers: peers{block("0.0.0.0/0")}, egress: opened, want: rules{out[0], toOwnDNS(corev1.ProtocolUDP, corev1.ProtocolTCP), apiserver},
		},
		"every address but some": {
			peers: peers{block("192.0.0.0/2", "203.0.113.128/25", "203.0.113.1/32", "198.51.0.0/16")}, egress: opened,
			want: rules{{To: peers{block("203.0.113.0/25", "203.0.113.1/32")}}, apiserver},
		},
		"addresses in what is open":      {peers: peers{block("198.51.100.7/32")}, egress: opened, want: rules{{To: peers{block("198.51.100.7/32")}}}},
		"addresses of both":              {peers: peers{block("198.51.100.0/24"), block("198.51.100.0/24")}, egress: opened, want: rules{{To: out[0].To[:1]}}},
		"other addresses":                {peers: peers{block("192.0.2.7/32")}, egress: opened},
		"the address of a pod":           {peers: peers{block("10.244.7.7/32")}, egress: everything},
		"all addresses of pods":          {peers: peers{block("10.244.0.0/15")}, egress: everything, want: rules{{To: peers{block("10.244.0.0/15", "10.244.0.0/16", "10.245.0.0/16")}}}},
		"addresses of nodes":             {peers: peers{block("192.168.1.0/24")}, egress: everything},
		"metadata":                       {peers: peers{block("169.254.169.254/32")}, egress: everything},
		"metadata, mapped":               {peers: peers{block("::ffff:169.254.169.254/128")}, egress: everything},
		"an invalid block":               {peers: peers{block("010.1.0.0/16")}, egress: everything},
		"the address of the apiserver":   {peers: peers{block("192.168.7.1/32")}, want: rules{apiserver}},
		"the address of its Service":     {ports: ports{https}, peers: peers{block("10.104.0.1/32")}, want: rules{apiserver}},
		"the apiserver at another port":  {ports: ports{web}, peers: peers{block("192.168.7.1/32")}},
		"the address of the DNS Service": {peers: peers{block("10.104.0.10/32")}, want: rules{toOwnDNS(corev1.ProtocolUDP, corev1.ProtocolTCP)}},
		"the pods of the DNS by UDP": {
			ports: ports{atPort(corev1.ProtocolUDP, intstr.FromInt32(53))},
			peers: peers{{NamespaceSelector: byLabels("kubernetes.io/metadata.name", "kube-system"), PodSelector: byLabels("k8s-app", "kube-dns")}},
			want: rules{
				{
					To:    peers{{NamespaceSelector: kubeDNS.NamespaceSelector, PodSelector: inFront("k8s-app", "kube-dns")}},
					Ports: ports{atPort(corev1.ProtocolUDP, intstr.FromInt32(53))},
				},
				toOwnDNS(corev1.ProtocolUDP),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := frontPolicy(tt.ports, tt.peers...)
			tenant.Spec.PodSelector = *byLabels("app", "web")
			tenant.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers{own}}}
			got, err := boundKind(t).Desired(networked(tt.egress...), tenant)
			if err != nil {
				t.Fatal(err)
			}
			want := networkingv1.NetworkPolicySpec{PodSelector: *inFront("app", "web"), Ingress: tenant.Spec.Ingress, Egress: tt.want}
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPoliciesForIngressAreOfEveryNetwork: connections from other networks are
// rejected where they begin.
func TestPoliciesForIngressAreOfEveryNetwork(t *testing.T) {
	for name, types := range map[string][]networkingv1.PolicyType{
		"ingress alone": {"Ingress"}, "no egress at all": {"Ingress", "Egress"},
	} {
		tenant := &networkingv1.NetworkPolicy{ObjectMeta: meta("web"), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *byLabels("app", "web"), PolicyTypes: types,
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: byLabels("app", "front")}}}},
		}}
		got, err := boundKind(t).Desired(networked(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tenant.Spec, got.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTooManyPeersInANetwork: a policy is not copied in part.
func TestTooManyPeersInANetwork(t *testing.T) {
	var opened []netip.Prefix
	for i := range 32 {
		opened = append(opened, netip.MustParsePrefix(fmt.Sprintf("198.51.%d.0/24", i)))
	}
	var blocks []networkingv1.NetworkPolicyPeer
	for i := range 200 {
		blocks = append(blocks, block("198.0.0.0/8", fmt.Sprintf("198.51.0.%d/32", i), fmt.Sprintf("198.51.1.%d/32", i)))
	}
	if got, err := boundKind(t).Desired(networked(opened...), frontPolicy(nil, blocks...)); err != nil || len(got.Spec.Egress[0].To) != 430 {
		t.Errorf("peers that are the same are copied once: %v, %v", err, got)
	}
	for i := range 6000 {
		blocks = append(blocks, block(fmt.Sprintf("198.51.%d.%d/32", i/256, i%256)))
	}
	if _, err := boundKind(t).Desired(networked(opened...), frontPolicy(nil, blocks...)); err == nil || !strings.Contains(err.Error(), "more than 5000 peers within Network front") {
		t.Errorf("of 6000 peers: %v", err)
	}
}

// TestEgressMakesRoom checks that the policies of networks do not select pods
// that a policy of the tenant selects for egress, of whichever network it is.
func TestEgressMakesRoom(t *testing.T) {
	copied := func(policy *networkingv1.NetworkPolicy, types ...networkingv1.PolicyType) *networkingv1.NetworkPolicy {
		k := boundKind(t)
		policy.Spec.PolicyTypes = types
		got := downIn(t, networked(), k, policy)
		got.Labels[networkLabelKey] = "front" // as the engine does
		return got
	}
	about := func(app string, to ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
		policy := frontPolicy(nil, to...)
		policy.Spec.PodSelector = *byLabels("app", app)
		return policy
	}
	all := frontPolicy(nil)
	all.Spec.Egress = nil
	for name, tt := range map[string]struct {
		view     kinds.View
		policies []*networkingv1.NetworkPolicy
		want     bool
	}{
		"no policy":                          {networked(), nil, false},
		"one about it, of another network":   {networked(), []*networkingv1.NetworkPolicy{copied(about("web"), "Egress")}, true},
		"one about all that allows nothing":  {networked(), []*networkingv1.NetworkPolicy{copied(all, "Egress")}, true},
		"one about other pods":               {networked(), []*networkingv1.NetworkPolicy{copied(about("cart"), "Egress")}, false},
		"one about what it receives":         {networked(), []*networkingv1.NetworkPolicy{copied(about("web"), "Ingress")}, false},
		"one about it, of a tenant without":  {view, []*networkingv1.NetworkPolicy{copied(about("web"), "Egress")}, false},
		"one about it, of the copy's labels": {networked(), []*networkingv1.NetworkPolicy{copied(about("web", block("0.0.0.0/0")), "Egress")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			shouldMark(t, tt.view, tt.policies, "tenancy.x-k8s.io/own-egress", tt.want)
		})
	}
}

// TestNamesOfOwnPolicies: a tenant's policy with the name of one of the
// syncer's would take its place.
func TestNamesOfOwnPolicies(t *testing.T) {
	k := boundKind(t)
	for _, o := range append(k.Own, k.OwnInNetworks.Closed, k.OwnInNetworks.Of(kinds.Network{Name: "front"})) {
		if !k.Reserved(o.Name) {
			t.Errorf("%s is not reserved", o.Name)
		}
	}
	for _, name := range []string{"web", "tenancy.x-k8s.io", "tenant-isolation"} {
		if k.Reserved(name) {
			t.Errorf("%s is reserved", name)
		}
	}
}
