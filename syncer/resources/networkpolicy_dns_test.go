package resources

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// egressTo returns a policy of a namespace with one rule for egress.
func egressTo(namespace string, ports []networkingv1.NetworkPolicyPort, peers ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "policy"},
		Spec:       networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{To: peers, Ports: ports}}},
	}
}

// atPort returns a port of a rule.
func atPort(protocol corev1.Protocol, port intstr.IntOrString) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port}
}

// TestPolicyForSharedDNS: policies that allow egress to the tenant's DNS, as to a
// CoreDNS of the tenant's own, allow egress to vc-dns, by the same protocols.
// Others do not.
func TestPolicyForSharedDNS(t *testing.T) {
	const udp, tcp = corev1.ProtocolUDP, corev1.ProtocolTCP
	type (
		peer  = networkingv1.NetworkPolicyPeer
		ports = []networkingv1.NetworkPolicyPort
	)
	byName := byLabels(corev1.LabelMetadataName, metav1.NamespaceSystem)
	dnsPods := peer{NamespaceSelector: byName, PodSelector: byLabels("k8s-app", "kube-dns")}
	block := func(cidr string, except ...string) peer {
		return peer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
	}
	number := intstr.FromInt32
	lower := atPort(udp, number(1))
	lower.EndPort = new(int32(1023))
	for name, tt := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		want   []corev1.Protocol
	}{
		"everywhere":                    {egressTo("default", nil), []corev1.Protocol{udp, tcp}},
		"a port everywhere":             {egressTo("default", ports{atPort(udp, number(53))}), []corev1.Protocol{udp}},
		"both protocols":                {egressTo("default", ports{atPort(udp, number(53)), {Port: new(number(53))}}), []corev1.Protocol{udp, tcp}},
		"another port":                  {egressTo("default", ports{atPort(tcp, number(443))}, dnsPods), nil},
		"a range of ports":              {egressTo("default", ports{lower}, dnsPods), []corev1.Protocol{udp}},
		"ports by their names":          {egressTo("default", ports{atPort(tcp, intstr.FromString("dns-tcp"))}, dnsPods), []corev1.Protocol{tcp}},
		"another name of a port":        {egressTo("default", ports{atPort(tcp, intstr.FromString("dns"))}, dnsPods), nil},
		"all ports of a protocol":       {egressTo("default", ports{{Protocol: new(udp)}}, dnsPods), []corev1.Protocol{udp}},
		"the pods of the DNS":           {egressTo("default", nil, dnsPods), []corev1.Protocol{udp, tcp}},
		"a namespace by its own labels": {egressTo("default", nil, peer{NamespaceSelector: byLabels("team", "system")}), []corev1.Protocol{udp, tcp}},
		"every namespace":               {egressTo("default", nil, peer{NamespaceSelector: byLabels()}), []corev1.Protocol{udp, tcp}},
		"another namespace":             {egressTo("default", nil, peer{NamespaceSelector: byLabels(corev1.LabelMetadataName, "default")}), nil},
		"other pods there":              {egressTo("default", nil, peer{NamespaceSelector: byName, PodSelector: byLabels("app", "web")}), nil},
		"pods of the same namespace":    {egressTo("default", nil, peer{PodSelector: byLabels()}), nil},
		"pods of kube-system in it":     {egressTo(metav1.NamespaceSystem, nil, peer{PodSelector: byLabels()}), []corev1.Protocol{udp, tcp}},
		"the address of the Service":    {egressTo("default", nil, block("10.104.16.10/32")), []corev1.Protocol{udp, tcp}},
		"all addresses":                 {egressTo("default", ports{atPort(udp, number(53))}, block("0.0.0.0/0")), []corev1.Protocol{udp}},
		"all except that one":           {egressTo("default", nil, block("0.0.0.0/0", "10.104.16.0/20")), nil},
		"nowhere":                       {&networkingv1.NetworkPolicy{ObjectMeta: meta("policy")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			checkDNSRule(t, tt.policy, tt.want)
		})
	}
}

// checkDNSRule compares the rules of the copy with those of a copy without a
// shared DNS, and one for vc-dns if there are protocols.
func checkDNSRule(t *testing.T, policy *networkingv1.NetworkPolicy, protocols []corev1.Protocol) {
	t.Helper()
	v := view
	v.Tenant.ServiceCIDR, v.Namespace = netip.MustParsePrefix("10.104.16.0/20"), policy.Namespace
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: metav1.NamespaceSystem, Labels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem, "team": "system"},
	}}
	v.Lookup = func(schema.GroupKind, client.ObjectKey, types.UID) client.Object { return system }
	flows := ForSharedDNS([]kinds.Flow{NetworkPolicy(pods)})
	got, err := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, flows[0]).Desired(v, policy)
	if err != nil {
		t.Fatal(err)
	}
	want, err := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, NetworkPolicy(pods)).Desired(v, policy)
	if err != nil {
		t.Fatal(err)
	}
	if len(protocols) > 0 {
		rule := networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: names.VCName, Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
			PodSelector: byLabels("app.kubernetes.io/name", "vc-dns"),
		}}}
		for _, protocol := range protocols {
			rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Protocol: &protocol})
		}
		want.Spec.Egress = append(want.Spec.Egress, rule)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}
