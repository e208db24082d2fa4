// Package policies enforces NetworkPolicies on a node: it keeps a packet filter in the kernel as they say.
package policies

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"go4.org/netipx"
)

// Cluster is what decides about connections.
type Cluster struct {
	Pods []Pod
	// Namespaces are the labels of each.
	Namespaces map[string]labels.Set
	Policies   []*networkingv1.NetworkPolicy
}

// Pod is what policies see of a pod that has an address of its own.
type Pod struct {
	Namespace string
	Labels    labels.Set
	Address   netip.Addr
	Ports     []corev1.ContainerPort
}

// Filter says which new connections pass.
type Filter struct {
	// Ingress is about connections to pods, and Egress about those that pods make.
	Ingress, Egress Direction
}

// Direction is one half of a filter.
type Direction struct {
	// Isolated are the pods that have no connections but those that are allowed.
	Isolated []netip.Addr
	Allowed  []Allowance
}

// Allowance allows connections between isolated pods and peers.
type Allowance struct {
	Pods, Peers []netipx.IPRange
	Port        Port
}

// Port is what a connection leads to; the zero value is anything.
type Port struct {
	Protocol corev1.Protocol
	From, To uint16
}

// NewFilter is what the policies of a cluster come to. They only add to each other.
func NewFilter(c Cluster) (Filter, error) {
	var f Filter
	for _, policy := range c.Policies {
		selected, err := c.selected(policy.Namespace, &policy.Spec.PodSelector)
		if err != nil {
			return f, err
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			if err := f.Ingress.admit(c, policy, selected); err != nil {
				return f, err
			}
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			if err := f.Egress.release(c, policy, selected); err != nil {
				return f, err
			}
		}
	}
	f.Ingress.Isolated, f.Egress.Isolated = sorted(f.Ingress.Isolated), sorted(f.Egress.Isolated)
	return f, nil
}

// admit adds what a policy says about connections to the pods that it selects.
func (d *Direction) admit(c Cluster, policy *networkingv1.NetworkPolicy, selected []Pod) error {
	d.isolate(selected)
	for _, rule := range policy.Spec.Ingress {
		from, err := c.peers(policy.Namespace, rule.From)
		if err != nil {
			return err
		}
		for _, to := range destinations(rule.Ports, selected) {
			if err := d.allow(peers{pods: to.pods}, from, to.port); err != nil {
				return err
			}
		}
	}
	return nil
}

// release adds what a policy says about connections of the pods that it selects.
func (d *Direction) release(c Cluster, policy *networkingv1.NetworkPolicy, selected []Pod) error {
	d.isolate(selected)
	for _, rule := range policy.Spec.Egress {
		peers, err := c.peers(policy.Namespace, rule.To)
		if err != nil {
			return err
		}
		for _, to := range destinations(rule.Ports, peers.pods) {
			there := peers
			if to.named {
				there.pods, there.blocks = to.pods, nil // only pods have ports with names
			}
			if err := d.allow(peersOf(selected), there, to.port); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Direction) isolate(pods []Pod) {
	for _, pod := range pods {
		d.Isolated = append(d.Isolated, pod.Address)
	}
}

// allow allows connections, if there can be any.
func (d *Direction) allow(pods, with peers, port Port) error {
	isolated, err := pods.addresses()
	if err != nil {
		return err
	}
	others, err := with.addresses()
	if err != nil {
		return err
	}
	if len(isolated) > 0 && len(others) > 0 {
		d.Allowed = append(d.Allowed, Allowance{Pods: isolated, Peers: others, Port: port})
	}
	return nil
}

// selected are the pods of a namespace that a selector selects.
func (c Cluster) selected(namespace string, by *metav1.LabelSelector) ([]Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, err
	}
	var found []Pod
	for _, pod := range c.Pods {
		if pod.Namespace == namespace && selector.Matches(pod.Labels) {
			found = append(found, pod)
		}
	}
	return found, nil
}

func sorted(addresses []netip.Addr) []netip.Addr {
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}
