package resources

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// outer has the super cluster's ranges in these tests.
var outer = Outside{Pods: pods, Internal: must(ParseRanges([]string{"192.168.0.0/16", "fd00:20::/48"}))}

// Addresses that are never outside, in the order in which they are cut out.
var (
	inner4 = []string{"10.244.0.0/16", "10.245.0.0/16", "192.168.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.0/24"}
	inner6 = []string{"fd00:10::/56", "fd00:20::/48", "fd00:ec2::/32", "fd20:ce::254/128", "fe80::/10"}
)

// everything are the ranges of a network that opens all addresses.
var everything = ranges("0.0.0.0/0", "::/0")

func ranges(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// inFront selects pods of the network front, by labels.
func inFront(pairs ...string) *metav1.LabelSelector {
	s := byLabels(pairs...)
	s.MatchExpressions = append(s.MatchExpressions, requirement("arktos.futurewei.com/network", metav1.LabelSelectorOpIn, "front"))
	return s
}

// front are all pods of the network front.
var front = networkingv1.NetworkPolicyPeer{NamespaceSelector: ofBlue(), PodSelector: inFront()}

// toDNS are the rules by which pods of every network reach the DNS of their
// tenant.
var toDNS = []networkingv1.NetworkPolicyEgressRule{
	{
		To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: platform.NamespaceSelector, PodSelector: byLabels("app.kubernetes.io/name", "vc-dns"),
		}},
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolUDP)}, {Protocol: new(corev1.ProtocolTCP)}},
	},
	{
		To:    []networkingv1.NetworkPolicyPeer{kubeDNS},
		Ports: []networkingv1.NetworkPolicyPort{atPort(corev1.ProtocolUDP, intstr.FromInt32(53)), atPort(corev1.ProtocolTCP, intstr.FromInt32(53))},
	},
}

var kubeDNS = networkingv1.NetworkPolicyPeer{
	NamespaceSelector: ofBlue("kubernetes.io/metadata.name", "team-71a1c3-blue-kube-system"), PodSelector: byLabels("k8s-app", "kube-dns"),
}

// toApiserver is the rule for an apiserver at an address.
func toApiserver(cidr string, port int32, more ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		To:    append([]networkingv1.NetworkPolicyPeer{block(cidr)}, more...),
		Ports: []networkingv1.NetworkPolicyPort{atPort(corev1.ProtocolTCP, intstr.FromInt32(port))},
	}
}

// TestPoliciesOfNetworks: there is one policy for each namespace, and one for
// each network in it.
func TestPoliciesOfNetworks(t *testing.T) {
	type rules = []networkingv1.NetworkPolicyEgressRule
	all := rules{{To: []networkingv1.NetworkPolicyPeer{block("0.0.0.0/0", inner4...), block("::/0", inner6...)}}}
	host := networkingv1.NetworkPolicyPeer{
		NamespaceSelector: platform.NamespaceSelector, PodSelector: byLabels("app.kubernetes.io/name", "vc-host"),
	}
	for name, tt := range map[string]struct {
		outside               Outside
		egress                []netip.Prefix
		endpoint, podEndpoint string
		want                  rules
	}{
		"nothing outside":                {outside: outer},
		"everything":                     {outside: outer, egress: everything, want: all},
		"a range":                        {outside: outer, egress: ranges("198.51.100.0/24"), want: rules{{To: []networkingv1.NetworkPolicyPeer{block("198.51.100.0/24")}}}},
		"ranges that have the platform":  {outside: outer, egress: ranges("192.0.0.0/8"), want: rules{{To: []networkingv1.NetworkPolicyPeer{block("192.0.0.0/8", "192.168.0.0/16", "192.0.0.0/24")}}}},
		"a range of pods":                {outside: outer, egress: ranges("10.244.7.0/24")},
		"a range of nodes":               {outside: outer, egress: ranges("192.168.1.0/24", "fd00:20::/64")},
		"metadata of clouds":             {outside: outer, egress: ranges("169.254.169.254/32", "fd00:ec2::254/128", "100.100.100.200/32")},
		"unknown ranges of pods":         {outside: Outside{Internal: outer.Internal}, egress: everything},
		"unknown ranges of the platform": {outside: Outside{Pods: outer.Pods}, egress: everything},
		"a family with unknown ranges": {
			outside: Outside{Pods: outer.Pods, Internal: outer.Internal[:1]}, egress: everything,
			want: rules{{To: []networkingv1.NetworkPolicyPeer{block("0.0.0.0/0", inner4...)}}},
		},
		"an apiserver": {outside: outer, endpoint: "https://192.168.7.1:6443", want: rules{toApiserver("192.168.7.1/32", 6443)}},
		"an apiserver with two addresses": {
			outside: outer, endpoint: "https://203.0.113.7", podEndpoint: "https://[fd00:20::7]:20001",
			want: rules{toApiserver("203.0.113.7/32", 443), toApiserver("fd00:20::7/128", 20001)},
		},
		"an apiserver in a pod":          {outside: outer, podEndpoint: "https://10.244.0.9:20001", want: rules{toApiserver("10.244.0.9/32", 20001, host)}},
		"an apiserver with a host name":  {outside: outer, endpoint: "https://blue.example.com:6443"},
		"an apiserver, twice the same":   {outside: outer, endpoint: "https://192.168.7.1:6443", podEndpoint: "https://192.168.7.1:6443", want: rules{toApiserver("192.168.7.1/32", 6443)}},
		"an apiserver and what is open":  {outside: outer, egress: everything, endpoint: "https://192.168.7.1:6443", want: append(rules{toApiserver("192.168.7.1/32", 6443)}, all...)},
		"a range of mapped addresses":    {outside: outer, egress: ranges("::ffff:169.254.169.254/128")},
		"a range, as far as it is other": {outside: outer, egress: ranges("192.168.0.0/15"), want: rules{{To: []networkingv1.NetworkPolicyPeer{block("192.168.0.0/15", "192.168.0.0/16")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := view
			v.Tenant.Endpoint, v.Tenant.PodEndpoint = tt.endpoint, tt.podEndpoint
			own := tt.outside.own()
			want := networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					requirement("arktos.futurewei.com/network", metav1.LabelSelectorOpIn, "front"),
					{Key: "tenancy.x-k8s.io/own-egress", Operator: metav1.LabelSelectorOpDoesNotExist},
				}},
				PolicyTypes: []networkingv1.PolicyType{"Egress"},
				Egress:      append(append(rules{{To: []networkingv1.NetworkPolicyPeer{front}}}, toDNS...), tt.want...),
			}
			of := own.Of(kinds.Network{Name: "front", Egress: tt.egress})
			if diff := cmp.Diff(want, of.Desired(v).Spec); diff != "" || of.Name != "front.network-egress.tenancy.x-k8s.io" {
				t.Errorf("policy %s (-want +got):\n%s", of.Name, diff)
			}
			closed := networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress"}}
			if diff := cmp.Diff(closed, own.Closed.Desired(v).Spec); diff != "" || own.Closed.Name != "tenant-egress.tenancy.x-k8s.io" {
				t.Errorf("policy %s (-want +got):\n%s", own.Closed.Name, diff)
			}
		})
	}
}
