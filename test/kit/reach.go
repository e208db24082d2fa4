package kit

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reaches reports whether the NetworkPolicies of a cluster allow a pod to
// connect to another one, at any port.
func Reaches(ctx context.Context, c client.Client, from, to *corev1.Pod) (bool, error) {
	p, err := newPolicies(ctx, c)
	if err != nil {
		return false, err
	}
	return p.allows(from, podEnd(to), networkingv1.PolicyTypeEgress) && p.allows(to, podEnd(from), networkingv1.PolicyTypeIngress), nil
}

// ReachesAddress reports whether the NetworkPolicies of a cluster allow a pod to
// connect to an address that is no pod's, at any port.
func ReachesAddress(ctx context.Context, c client.Client, from *corev1.Pod, to string) (bool, error) {
	address, err := netip.ParseAddr(to)
	if err != nil {
		return false, err
	}
	p, err := newPolicies(ctx, c)
	if err != nil {
		return false, err
	}
	return p.allows(from, end{address: address}, networkingv1.PolicyTypeEgress), nil
}

// policies are the NetworkPolicies of a cluster, and the labels of namespaces.
type policies struct {
	all        []networkingv1.NetworkPolicy
	namespaces map[string]labels.Set
}

func newPolicies(ctx context.Context, c client.Client) (policies, error) {
	list, namespaces := &networkingv1.NetworkPolicyList{}, &corev1.NamespaceList{}
	if err := c.List(ctx, list); err != nil {
		return policies{}, err
	}
	if err := c.List(ctx, namespaces); err != nil {
		return policies{}, err
	}
	p := policies{all: list.Items, namespaces: map[string]labels.Set{}}
	for i := range namespaces.Items {
		p.namespaces[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	return p, nil
}

// end is one end of a connection: a pod, or an address alone.
type end struct {
	pod     *corev1.Pod
	address netip.Addr
}

func podEnd(pod *corev1.Pod) end {
	address, _ := netip.ParseAddr(pod.Status.PodIP) // invalid if it has none yet
	return end{pod: pod, address: address}
}

// allows reports whether the policies for a pod allow a connection in one
// direction.
func (p policies) allows(pod *corev1.Pod, other end, direction networkingv1.PolicyType) bool {
	isolated := false
	for i := range p.all {
		policy := &p.all[i]
		if policy.Namespace != pod.Namespace || !slices.Contains(policy.Spec.PolicyTypes, direction) || !selects(&policy.Spec.PodSelector, pod.Labels) {
			continue
		}
		isolated = true
		for _, peers := range peersIn(policy, direction) {
			if len(peers) == 0 || slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool { return p.has(policy.Namespace, peer, other) }) {
				return true
			}
		}
	}
	return !isolated
}

// peersIn returns the peers of each rule of a policy.
func peersIn(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) [][]networkingv1.NetworkPolicyPeer {
	var all [][]networkingv1.NetworkPolicyPeer
	if direction == networkingv1.PolicyTypeIngress {
		for _, rule := range policy.Spec.Ingress {
			all = append(all, rule.From)
		}
		return all
	}
	for _, rule := range policy.Spec.Egress {
		all = append(all, rule.To)
	}
	return all
}

// has reports whether a peer of a policy in a namespace is an end of a
// connection.
func (p policies) has(namespace string, peer networkingv1.NetworkPolicyPeer, of end) bool {
	switch {
	case peer.IPBlock != nil:
		return blockHas(peer.IPBlock, of.address)
	case of.pod == nil:
		return false
	case peer.NamespaceSelector == nil && of.pod.Namespace != namespace:
		return false
	case peer.NamespaceSelector != nil && !selects(peer.NamespaceSelector, p.namespaces[of.pod.Namespace]):
		return false
	}
	return peer.PodSelector == nil || selects(peer.PodSelector, of.pod.Labels)
}

func selects(selector *metav1.LabelSelector, of labels.Set) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(of)
}

func blockHas(block *networkingv1.IPBlock, address netip.Addr) bool {
	has := func(cidr string) bool {
		parsed, err := netip.ParsePrefix(cidr)
		return err == nil && parsed.Contains(address)
	}
	return address.IsValid() && has(block.CIDR) && !slices.ContainsFunc(block.Except, has)
}
