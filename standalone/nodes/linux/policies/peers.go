package policies

import (
	"fmt"
	"net"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	netutils "k8s.io/utils/net"

	"go4.org/netipx"
)

// everywhere contains every address to or from which a pod of this node can
// connect.
var everywhere = netip.MustParsePrefix("0.0.0.0/0")

// peers is one end of connections: pods, and address blocks.
type peers struct {
	pods   []Pod
	blocks []networkingv1.IPBlock
}

// peers returns the peers of a rule of a policy in a namespace. A rule without
// peers matches all.
func (c Cluster) peers(namespace string, list []networkingv1.NetworkPolicyPeer) (peers, error) {
	if len(list) == 0 {
		return peers{pods: c.Pods, blocks: []networkingv1.IPBlock{{CIDR: everywhere.String()}}}, nil
	}
	var all peers
	for _, peer := range list {
		if peer.IPBlock != nil {
			all.blocks = append(all.blocks, *peer.IPBlock)
			continue
		}
		pods, err := c.peerPods(namespace, peer)
		if err != nil {
			return peers{}, err
		}
		all.pods = append(all.pods, pods...)
	}
	return all, nil
}

// peerPods returns the pods that a peer selects.
func (c Cluster) peerPods(namespace string, peer networkingv1.NetworkPolicyPeer) ([]Pod, error) {
	pods := peer.PodSelector
	if pods == nil {
		pods = &metav1.LabelSelector{}
	}
	if peer.NamespaceSelector == nil {
		return c.selected(namespace, pods)
	}
	selector, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
	if err != nil {
		return nil, err
	}
	var found []Pod
	for name := range c.inside {
		if set, known := c.Namespaces[name]; !known || !selector.Matches(set) {
			continue
		}
		inside, err := c.selected(name, pods)
		if err != nil {
			return nil, err
		}
		found = append(found, inside...)
	}
	return found, nil
}

func peersOf(pods []Pod) peers { return peers{pods: pods} }

// addresses returns the addresses of the peers, in ranges that neither touch
// nor overlap.
func (p peers) addresses() ([]netipx.IPRange, error) {
	var all netipx.IPSetBuilder
	for _, pod := range p.pods {
		all.Add(pod.Address)
	}
	for _, block := range p.blocks {
		set, err := blockSet(block)
		if err != nil {
			return nil, err
		}
		all.AddSet(set)
	}
	set, err := all.IPSet()
	if err != nil {
		return nil, err
	}
	return set.Ranges(), nil
}

// blockSet returns the addresses of a block; none for IPv6, which pods do not
// have.
func blockSet(block networkingv1.IPBlock) (*netipx.IPSet, error) {
	var b netipx.IPSetBuilder
	prefix, err := parseCIDR(block.CIDR)
	if err != nil {
		return nil, err
	}
	if prefix.Addr().Is4() {
		b.AddPrefix(prefix)
	}
	for _, except := range block.Except {
		prefix, err := parseCIDR(except)
		if err != nil {
			return nil, err
		}
		b.RemovePrefix(prefix)
	}
	return b.IPSet()
}

// parseCIDR parses what any version of the apiserver has accepted: older ones
// accept leading zeros, and IPv4 addresses that are mapped to IPv6.
func parseCIDR(cidr string) (netip.Prefix, error) {
	_, network, err := netutils.ParseCIDRSloppy(cidr)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse address block: %w", err)
	}
	ones, bits := network.Mask.Size()
	address, _ := netip.AddrFromSlice(network.IP)
	if address.Is4In6() && ones >= bits-net.IPv4len*8 {
		address, ones = address.Unmap(), ones-(bits-net.IPv4len*8)
	}
	return netip.PrefixFrom(address, ones), nil
}
