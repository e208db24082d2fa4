package resources

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// The port and the pods of a tenant's DNS, by which policies allow it. Pods of
// vc-dns have the label programLabel, and other ports.
const (
	dnsPort      = 53
	dnsPodLabel  = "k8s-app"
	dnsPodsValue = "kube-dns"
	programLabel = "app.kubernetes.io/name"
	vcDNSValue   = "vc-dns"
)

// vcHostValue is that of the pods of hosts, which have the apiservers of tenants.
const vcHostValue = "vc-host"

// withDNSRules adds a rule to the copies of policies that allow egress to the
// tenant's DNS: where the tenant expects pods of its own, vc-dns answers.
func withDNSRules(policies kinds.Down[*networkingv1.NetworkPolicy]) kinds.Down[*networkingv1.NetworkPolicy] {
	desired := policies.Desired
	policies.Desired = func(v kinds.View, tenant *networkingv1.NetworkPolicy) (*networkingv1.NetworkPolicy, error) {
		copied, err := desired(v, tenant)
		if err != nil {
			return nil, err
		}
		if ports := allowedDNSPorts(v, tenant.Spec.Egress); len(ports) > 0 {
			copied.Spec.Egress = append(copied.Spec.Egress, networkingv1.NetworkPolicyEgressRule{
				To: []networkingv1.NetworkPolicyPeer{vcDNS()}, Ports: ports,
			})
		}
		return copied, nil
	}
	return policies
}

// vcDNS selects the pods of vc-dns.
func vcDNS() networkingv1.NetworkPolicyPeer { return platformPods(vcDNSValue) }

// platformPods selects the pods of a program of the platform, which are in a
// namespace of no tenant.
func platformPods(program string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: names.VCName, Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{programLabel: program}},
	}
}

// allowedDNSPorts returns the protocols, for all ports, by which rules allow the
// tenant's DNS.
func allowedDNSPorts(v kinds.View, rules []networkingv1.NetworkPolicyEgressRule) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		if slices.ContainsFunc(rules, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return allowsDNSPort(rule.Ports, protocol) && allowsDNSPods(v, rule.To)
		}) {
			ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: new(protocol)})
		}
	}
	return ports
}

// allowsDNSPort reports whether a list of ports has that of a DNS. An empty list
// has all.
func allowsDNSPort(ports []networkingv1.NetworkPolicyPort, protocol corev1.Protocol) bool {
	name := map[corev1.Protocol]string{corev1.ProtocolUDP: "dns", corev1.ProtocolTCP: "dns-tcp"}[protocol]
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		switch {
		case ptr.Deref(p.Protocol, corev1.ProtocolTCP) != protocol:
			return false
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return p.Port.StrVal == name
		default:
			return p.Port.IntVal <= dnsPort && dnsPort <= ptr.Deref(p.EndPort, p.Port.IntVal)
		}
	})
}

// allowsDNSPods reports whether a list of peers has the pods or the address of
// the tenant's DNS. An empty list has all.
func allowsDNSPods(v kinds.View, peers []networkingv1.NetworkPolicyPeer) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		switch {
		case peer.IPBlock != nil:
			return blockHas(peer.IPBlock, v.Tenant.ServiceAddress(addresses.DNS))
		case peer.PodSelector != nil && !selects(peer.PodSelector, labels.Set{dnsPodLabel: dnsPodsValue}):
			return false
		case peer.NamespaceSelector == nil:
			return v.Namespace == metav1.NamespaceSystem
		default:
			return selects(peer.NamespaceSelector, kubeSystemLabels(v))
		}
	})
}

// kubeSystemLabels returns the labels of the tenant's namespace kube-system.
func kubeSystemLabels(v kinds.View) labels.Set {
	key := client.ObjectKey{Name: v.Tenant.SuperNamespace(metav1.NamespaceSystem)}
	if ns := v.Lookup(schema.GroupKind{Kind: namespaceKind}, key, ""); ns != nil {
		return ns.GetLabels()
	}
	return labels.Set{corev1.LabelMetadataName: metav1.NamespaceSystem}
}

func selects(selector *metav1.LabelSelector, of labels.Set) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(of)
}

// blockHas reports whether a block has an address.
func blockHas(block *networkingv1.IPBlock, address netip.Addr) bool {
	has := func(cidr string) bool {
		parsed, err := netip.ParsePrefix(cidr)
		return err == nil && parsed.Contains(address)
	}
	return has(block.CIDR) && !slices.ContainsFunc(block.Except, has)
}
