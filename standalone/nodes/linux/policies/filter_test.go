package policies

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"go4.org/netipx"
)

// The cluster of the tests: .1 and .2 are in the shop, .3 is in the till.
var cluster = Cluster{
	Namespaces: map[string]labels.Set{"shop": {"tier": "front"}, "till": {"tier": "back"}},
	Pods: []Pod{
		{"shop", labels.Set{"app": "web"}, netip.MustParseAddr("10.0.0.1"), []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
		{"shop", labels.Set{"app": "cart"}, netip.MustParseAddr("10.0.0.2"), []corev1.ContainerPort{
			{Name: "http", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}, {Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
		}},
		{"till", labels.Set{"app": "web"}, netip.MustParseAddr("10.0.0.3"), nil},
	},
}

type (
	ingress = networkingv1.NetworkPolicyIngressRule
	egress  = networkingv1.NetworkPolicyEgressRule
	peer    = networkingv1.NetworkPolicyPeer
	ports   = []networkingv1.NetworkPolicyPort
)

func by(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// inShop is a policy for pods of the shop, for incoming connections unless it
// has rules for others.
func inShop(pods metav1.LabelSelector, in []ingress, out ...egress) *networkingv1.NetworkPolicy {
	about := networkingv1.PolicyTypeIngress
	if len(out) > 0 {
		about = networkingv1.PolicyTypeEgress
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "policy"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods, PolicyTypes: []networkingv1.PolicyType{about}, Ingress: in, Egress: out,
		},
	}
}

func port(p int32) ports { return ports{{Port: new(intstr.FromInt32(p))}} }

func TestFilter(t *testing.T) {
	everyPod, web := metav1.LabelSelector{}, *by("app", "web")
	tests := map[string]struct {
		policies []*networkingv1.NetworkPolicy
		want     string
	}{
		"no policy isolates no pod":      {nil, ""},
		"without a rule nothing comes":   {[]*networkingv1.NetworkPolicy{inShop(everyPod, nil)}, "in: only 1 2"},
		"a rule without from is for all": {[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{}})}, "in: only 1; 1 with all"},
		"pods of the same namespace": {
			[]*networkingv1.NetworkPolicy{inShop(everyPod, []ingress{{From: []peer{{PodSelector: by("app", "web")}}}})},
			"in: only 1 2; 1-2 with 1",
		},
		"pods of namespaces": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{From: []peer{{NamespaceSelector: by("tier", "back")}}}})},
			"in: only 1; 1 with 3",
		},
		"pods by both": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{From: []peer{{
				NamespaceSelector: &metav1.LabelSelector{}, PodSelector: by("app", "web"),
			}}}})},
			"in: only 1; 1 with 1,3",
		},
		"peers that do not exist match nothing instead of all": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{From: []peer{{PodSelector: by("app", "none")}}}})},
			"in: only 1",
		},
		"a block except a part of it": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{From: []peer{{IPBlock: &networkingv1.IPBlock{
				CIDR: "10.0.0.0/29", Except: []string{"10.0.0.2/31"},
			}}}}})},
			"in: only 1; 1 with 0-1,4-7",
		},
		"a block of IPv6 matches nothing": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{From: []peer{{IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}}}}})},
			"in: only 1",
		},
		"no policy denies what another one allows": {
			[]*networkingv1.NetworkPolicy{inShop(everyPod, nil), inShop(web, []ingress{{}})},
			"in: only 1 2; 1 with all",
		},
		"a port, and a range": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{Ports: append(port(80), networkingv1.NetworkPolicyPort{
				Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(90)), EndPort: new(int32(99)),
			})}})},
			"in: only 1; 1 with all at TCP 80-80; 1 with all at UDP 90-99",
		},
		"any port of a protocol": {
			[]*networkingv1.NetworkPolicy{inShop(web, []ingress{{Ports: ports{{Protocol: new(corev1.ProtocolUDP)}}}})},
			"in: only 1; 1 with all at UDP 0-65535",
		},
		"a name is another port at each pod": {
			[]*networkingv1.NetworkPolicy{inShop(everyPod, []ingress{{Ports: ports{{Port: new(intstr.FromString("http"))}}}})},
			"in: only 1 2; 1 with all at TCP 8080-8080; 2 with all at TCP 9090-9090",
		},
		"a name of another protocol is none": {
			[]*networkingv1.NetworkPolicy{inShop(everyPod, []ingress{{Ports: ports{{Port: new(intstr.FromString("dns"))}}}})},
			"in: only 1 2",
		},
		"connections that pods make": {
			[]*networkingv1.NetworkPolicy{inShop(web, nil, egress{To: []peer{{NamespaceSelector: by("tier", "back")}}, Ports: port(80)})},
			"out: only 1; 1 with 3 at TCP 80-80",
		},
		"a name leads to the pods that have it, and to no address": {
			[]*networkingv1.NetworkPolicy{inShop(web, nil, egress{Ports: ports{{Port: new(intstr.FromString("http"))}}})},
			"out: only 1; 1 with 1 at TCP 8080-8080; 1 with 2 at TCP 9090-9090",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster
			c.Policies = tt.policies
			got, err := NewFilter(c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.TrimSpace(said("in", got.Ingress)+said("out", got.Egress))); diff != "" {
				t.Errorf("filter (-want +got):\n%s", diff)
			}
		})
	}
}

// said is half of a filter in words, with addresses by their last byte.
func said(name string, d Direction) string {
	if len(d.Isolated) == 0 {
		return ""
	}
	text := name + ": only"
	for _, address := range d.Isolated {
		text += fmt.Sprint(" ", address.As4()[3])
	}
	for _, a := range d.Allowed {
		text += fmt.Sprintf("; %s with %s", inWords(a.Pods), inWords(a.Peers))
		if a.Port != (Port{}) {
			text += fmt.Sprintf(" at %s %d-%d", a.Port.Protocol, a.Port.From, a.Port.To)
		}
	}
	return text
}

func inWords(ranges []netipx.IPRange) string {
	var words []string
	for _, r := range ranges {
		switch first, last := r.From().As4()[3], r.To().As4()[3]; {
		case r == netipx.RangeOfPrefix(everywhere):
			words = append(words, "all")
		case first == last:
			words = append(words, fmt.Sprint(first))
		default:
			words = append(words, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(words, ",")
}

func TestBlockThatIsNone(t *testing.T) {
	c := cluster
	for _, block := range []networkingv1.IPBlock{{CIDR: "10.0.0.0"}, {CIDR: "10.0.0.0/8", Except: []string{"x"}}} {
		c.Policies = []*networkingv1.NetworkPolicy{inShop(metav1.LabelSelector{}, []ingress{{From: []peer{{IPBlock: &block}}}})}
		if _, err := NewFilter(c); err == nil {
			t.Errorf("%v was taken", block)
		}
	}
}
