// Package policies enforces NetworkPolicies on a node with a packet filter in
// the kernel.
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

// Cluster has the objects that determine which connections are allowed.
type Cluster struct {
	Pods []Pod
	// Namespaces has the labels of each namespace.
	Namespaces map[string]labels.Set
	Policies   []*networkingv1.NetworkPolicy
	// inside has the pods of each namespace that has some.
	inside map[string][]Pod
}

// Pod is the part of a pod that policies match. It has an address of its own.
type Pod struct {
	Namespace string
	Labels    labels.Set
	Address   netip.Addr
	Ports     []corev1.ContainerPort
}

// Filter determines which new connections are allowed.
type Filter struct {
	// Ingress filters connections to pods, and Egress connections from pods.
	Ingress, Egress Direction
}

// Direction is one half of a filter.
type Direction struct {
	// Isolated lists the pods whose connections need an allowance.
	Isolated []netip.Addr
	Allowed  []Allowance
}

// Allowance allows connections between isolated pods and peers.
type Allowance struct {
	Pods, Peers []netipx.IPRange
	Port        Port
}

// Port is the destination port of a connection; the zero value matches any.
type Port struct {
	Protocol corev1.Protocol
	From, To uint16
}

// NewFilter returns the union of all policies of a cluster: policies only
// allow.
func NewFilter(c Cluster) (Filter, error) {
	var f Filter
	c = c.indexed()
	for _, policy := range c.Policies {
		selected, err := c.selected(policy.Namespace, &policy.Spec.PodSelector)
		if err != nil {
			return f, err
		}
		if len(selected) == 0 {
			continue // peers cost more to find than pods
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

// indexed returns the cluster with its pods by namespace.
func (c Cluster) indexed() Cluster {
	c.inside = map[string][]Pod{}
	for _, pod := range c.Pods {
		c.inside[pod.Namespace] = append(c.inside[pod.Namespace], pod)
	}
	return c
}

// admit adds the ingress rules of a policy for the pods that it selects.
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

// release adds the egress rules of a policy for the pods that it selects.
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
				there.pods, there.blocks = to.pods, nil // only pods have named ports
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

// allow adds an allowance, unless it would match nothing.
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

// selected returns the pods of a namespace that a selector matches.
func (c Cluster) selected(namespace string, by *metav1.LabelSelector) ([]Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, err
	}
	var found []Pod
	for _, pod := range c.inside[namespace] {
		if selector.Matches(pod.Labels) {
			found = append(found, pod)
		}
	}
	return found, nil
}

func sorted(addresses []netip.Addr) []netip.Addr {
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}
