package policies

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// destination is a port, and the pods to which it applies.
type destination struct {
	port Port
	pods []Pod
	// named means that the port applies to these pods only, since the name may
	// be another port elsewhere.
	named bool
}

// destinations resolves the ports of a rule for pods. A rule without ports
// matches all.
func destinations(ports []networkingv1.NetworkPolicyPort, pods []Pod) []destination {
	if len(ports) == 0 {
		return []destination{{pods: pods}}
	}
	var all []destination
	for _, port := range ports {
		p := Port{Protocol: corev1.ProtocolTCP, To: math.MaxUint16}
		if port.Protocol != nil {
			p.Protocol = *port.Protocol
		}
		switch {
		case port.Port == nil:
			all = append(all, destination{port: p, pods: pods})
		case port.Port.Type == intstr.String:
			all = append(all, named(port.Port.StrVal, p.Protocol, pods)...)
		default:
			p.From, p.To = number(port.Port.IntVal), number(port.Port.IntVal)
			if port.EndPort != nil {
				p.To = number(*port.EndPort)
			}
			all = append(all, destination{port: p, pods: pods})
		}
	}
	return all
}

// named returns the ports with a name.
func named(name string, protocol corev1.Protocol, pods []Pod) []destination {
	var all []destination
	for _, pod := range pods {
		for _, port := range pod.Ports {
			if port.Name == name && cmp.Or(port.Protocol, corev1.ProtocolTCP) == protocol {
				n := number(port.ContainerPort)
				all = append(all, destination{port: Port{protocol, n, n}, pods: []Pod{pod}, named: true})
			}
		}
	}
	return merge(all)
}

// merge merges destinations with the same port.
func merge(all []destination) []destination {
	var merged []destination
	for _, each := range all {
		i := slices.IndexFunc(merged, func(d destination) bool { return d.port == each.port })
		if i < 0 {
			merged = append(merged, each)
			continue
		}
		merged[i].pods = append(merged[i].pods, each.pods...)
	}
	return merged
}

// number converts a port that the apiserver has validated.
func number(port int32) uint16 {
	return uint16(port) //nolint:gosec // at most 65535
}
