package policies

import (
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// at is one destination as a test writes it: a port, and the addresses of the
// pods that have it.
type at struct {
	Port  Port
	Pods  []string
	Named bool
}

func TestDestinations(t *testing.T) {
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	all := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	http, dns := intstr.FromString("http"), intstr.FromString("dns")
	for name, c := range map[string]struct {
		ports ports
		want  []at
	}{
		"no ports":               {nil, []at{{Pods: all}}},
		"a number":               {port(80), []at{{Port{tcp, 80, 80}, all, false}}},
		"a number of UDP":        {ports{{Protocol: new(udp), Port: new(intstr.FromInt32(53))}}, []at{{Port{udp, 53, 53}, all, false}}},
		"a protocol":             {ports{{Protocol: new(udp)}}, []at{{Port{udp, 0, math.MaxUint16}, all, false}}},
		"a range":                {ports{{Port: new(intstr.FromInt32(80)), EndPort: new(int32(90))}}, []at{{Port{tcp, 80, 90}, all, false}}},
		"the highest":            {port(65535), []at{{Port{tcp, 65535, 65535}, all, false}}},
		"two numbers":            {append(port(80), port(81)...), []at{{Port{tcp, 80, 80}, all, false}, {Port{tcp, 81, 81}, all, false}}},
		"a name":                 {ports{{Port: &http}}, []at{{Port{tcp, 8080, 8080}, all[:1], true}, {Port{tcp, 9090, 9090}, all[1:2], true}}},
		"a name of UDP":          {ports{{Protocol: new(udp), Port: &dns}}, []at{{Port{udp, 53, 53}, all[1:2], true}}},
		"of the other":           {ports{{Port: &dns}}, nil},
		"a name that no pod has": {ports{{Port: new(intstr.FromString("metrics"))}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, written(destinations(c.ports, cluster.Pods))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNamedPortsAreMerged: pods that have the same number for a name share a
// destination.
func TestNamedPortsAreMerged(t *testing.T) {
	pod := func(address string, number int32) Pod {
		return Pod{Address: netip.MustParseAddr(address), Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: number}}}
	}
	pods := []Pod{pod("10.0.0.1", 80), pod("10.0.0.2", 81), pod("10.0.0.3", 80)}
	want := []at{
		{Port{corev1.ProtocolTCP, 80, 80}, []string{"10.0.0.1", "10.0.0.3"}, true},
		{Port{corev1.ProtocolTCP, 81, 81}, []string{"10.0.0.2"}, true},
	}
	got := destinations([]networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("http"))}}, pods)
	if diff := cmp.Diff(want, written(got)); diff != "" {
		t.Error(diff)
	}
}

func written(destinations []destination) []at {
	var all []at
	for _, d := range destinations {
		each := at{Port: d.port, Named: d.named}
		for _, pod := range d.pods {
			each.Pods = append(each.Pods, pod.Address.String())
		}
		all = append(all, each)
	}
	return all
}
