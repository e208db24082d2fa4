package networks

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

// ownRanges are the tenant's ranges of Service addresses.
var ownRanges = []netip.Prefix{netip.MustParsePrefix("10.104.16.0/20"), netip.MustParsePrefix("fd00:1::/116")}

// rangedNetwork returns a network with ranges.
func rangedNetwork(name string, cidrs ...networkv1.CIDR) networkv1.Network {
	return networkv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkv1.NetworkSpec{Service: &networkv1.ServiceSpec{CIDRs: cidrs}},
	}
}

func claimed(network, cidr string) claim { return claim{network, netip.MustParsePrefix(cidr)} }

func TestAssign(t *testing.T) {
	many := make([]networkv1.CIDR, maxRanges+1)
	for i := range many {
		many[i] = networkv1.CIDR(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 104, 20, byte(16 * i)}), 28).String())
	}
	for name, tc := range map[string]struct {
		networks []networkv1.Network
		held     []claim
		want     []string // granted ranges
		rejected map[string]string
	}{
		"parts of the tenant's range": {
			networks: []networkv1.Network{rangedNetwork("a", "10.104.20.0/24", "10.104.21.0/28"), rangedNetwork("b", "10.104.22.0/24")},
			want:     []string{"a 10.104.20.0/24", "a 10.104.21.0/28", "b 10.104.22.0/24"},
		},
		"all of it": {networks: []networkv1.Network{rangedNetwork("a", "10.104.16.0/20")}, want: []string{"a 10.104.16.0/20"}},
		"of both IP families": {
			networks: []networkv1.Network{rangedNetwork("a", "10.104.20.0/24", "fd00:1::100/120")},
			want:     []string{"a 10.104.20.0/24", "a fd00:1::100/120"},
		},
		"of another tenant": {
			networks: []networkv1.Network{rangedNetwork("a", "10.104.32.0/24")}, rejected: map[string]string{"a": "ServiceRangesOutside"},
		},
		"around the tenant's": {
			networks: []networkv1.Network{rangedNetwork("a", "10.104.0.0/16")}, rejected: map[string]string{"a": "ServiceRangesOutside"},
		},
		"of another family": {
			networks: []networkv1.Network{rangedNetwork("a", "fd00::/112"), rangedNetwork("b", "::ffff:10.104.20.0/120")},
			rejected: map[string]string{"a": "ServiceRangesOutside", "b": "ServiceRangesOutside"},
		},
		"that the API should not accept": {
			networks: []networkv1.Network{rangedNetwork("a", "10.104.20.1/24"), rangedNetwork("b", "")},
			rejected: map[string]string{"a": "ServiceRangesOutside", "b": "ServiceRangesOutside"},
		},
		"more than the API should accept": {
			networks: []networkv1.Network{rangedNetwork("a", many...)},
			want: []string{
				"a 10.104.20.0/28", "a 10.104.20.16/28", "a 10.104.20.32/28", "a 10.104.20.48/28",
				"a 10.104.20.64/28", "a 10.104.20.80/28", "a 10.104.20.96/28", "a 10.104.20.112/28",
			},
		},
		"that overlap: the first gets it": {
			networks: []networkv1.Network{rangedNetwork("a", "10.104.20.0/24"), rangedNetwork("b", "10.104.20.128/25", "10.104.21.0/24")},
			want:     []string{"a 10.104.20.0/24", "b 10.104.21.0/24"}, rejected: map[string]string{"b": "ServiceRangesOverlap"},
		},
		"that overlap: the holder keeps it": {
			networks: []networkv1.Network{rangedNetwork("a", "10.104.20.0/24"), rangedNetwork("b", "10.104.20.128/25")},
			held:     []claim{claimed("b", "10.104.20.128/25"), claimed("a", "10.104.25.0/24")},
			want:     []string{"b 10.104.20.128/25"}, rejected: map[string]string{"a": "ServiceRangesOverlap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			holds := func(c claim) bool { return slices.Contains(tc.held, c) }
			granted, rejected := assign(tc.networks, holds, ownRanges)
			var got []string
			for _, c := range granted {
				got = append(got, c.network+" "+c.cidr.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("granted: %s", diff)
			}
			reasons := map[string]string{}
			for network, why := range rejected {
				reasons[network] = why.Reason
			}
			if want := tc.rejected; len(want)+len(reasons) > 0 && !cmp.Equal(want, reasons) {
				t.Errorf("rejected: %s", cmp.Diff(want, reasons))
			}
		})
	}
}

// serviceOn returns a Service with addresses on a network.
func serviceOn(name, network string, ips ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: corev1.ServiceSpec{ClusterIPs: ips}}
	if network != "" {
		s.Labels = map[string]string{networkv1.Label: network}
	}
	return s
}

func TestUseOfRanges(t *testing.T) {
	granted := []claim{claimed("a", "fd00:1::100/120"), claimed("b", "10.104.20.16/30"), claimed("c", "fd00:1::200/120"), claimed("a", "10.104.20.0/28"), claimed("default", "10.104.16.0/28")}
	for name, tc := range map[string]struct {
		services []*corev1.Service
		want     map[string]string // reasons that are not ServiceRangesAvailable
		message  string            // of network a
	}{
		"none": {},
		"in their ranges": {
			services: []*corev1.Service{
				serviceOn("one", "a", "10.104.20.1"), serviceOn("two", "", "10.104.16.3"), serviceOn("three", "none", "10.104.30.1"),
				serviceOn("both", "a", "10.104.20.2", "fd00:1::101"), serviceOn("six", "c", "fd00:1::201"), serviceOn("headless", "a", "None"), serviceOn("name", "a"),
			},
		},
		"addresses with a meaning": {services: []*corev1.Service{serviceOn("dns", "a", "10.104.16.10"), serviceOn("kubernetes", "", "10.104.16.1")}},
		"all addresses": {
			services: []*corev1.Service{serviceOn("one", "b", "10.104.20.17"), serviceOn("two", "b", "10.104.20.18")},
			want:     map[string]string{"b": "ServiceRangesExhausted"},
		},
		"from before the range": {
			services: []*corev1.Service{serviceOn("old", "a", "10.104.30.1")},
			want:     map[string]string{"a": "ServiceRangeInUse"}, message: "team/old with 10.104.30.1",
		},
		"of another network, with and without ranges": {
			services: []*corev1.Service{serviceOn("default", "", "10.104.20.1"), serviceOn("none", "none", "10.104.20.2")},
			want:     map[string]string{"a": "ServiceRangeInUse", "default": "ServiceRangeInUse"},
			message:  "team/default with 10.104.20.1, team/none with 10.104.20.2",
		},
		"more than fit into a message": {
			services: []*corev1.Service{
				serviceOn("3", "a", "10.104.30.3"), serviceOn("1", "a", "10.104.30.1"), serviceOn("4", "a", "10.104.30.4"),
				serviceOn("2", "a", "10.104.30.2"), serviceOn("5", "a", "10.104.30.5"),
			},
			want: map[string]string{"a": "ServiceRangeInUse"}, message: "team/3 with 10.104.30.3, and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUse(granted, ownRanges)
			for _, s := range tc.services {
				u.count(s, "default")
			}
			for _, network := range []string{"a", "b", "default"} {
				c := u.condition(network, 3)
				want := tc.want[network]
				if want == "" {
					want = "ServiceRangesAvailable"
				}
				if c == nil || c.Reason != want || (c.Status == metav1.ConditionTrue) != (want == "ServiceRangesAvailable") {
					t.Errorf("network %s: %+v, want %s", network, c, want)
				}
				if network == "a" && !strings.HasSuffix(c.Message, tc.message) {
					t.Errorf("network a: %q, want %q", c.Message, tc.message)
				}
			}
			if c := u.condition("none", 3); c != nil {
				t.Errorf("a network without ranges has %+v", c)
			}
		})
	}
}

// TestMisplaced: a Service of the platform gets another address when it has one
// that its network should not have, and another one is left.
func TestMisplaced(t *testing.T) {
	granted := []claim{claimed("a", "10.104.20.0/24"), claimed("full", "10.104.21.0/32")}
	for name, tc := range map[string]struct {
		network, address string
		want             bool
	}{
		"of its network":           {"a", "10.104.20.7", false},
		"of no network":            {"a", "10.104.17.7", true},
		"of another network":       {"b", "10.104.20.7", true},
		"of no range, as others":   {"b", "10.104.17.7", false},
		"of one that is exhausted": {"full", "10.104.17.7", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &ranges{first: "default", use: newUse(granted, ownRanges)}
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{networkv1.Label: tc.network}}}
			s.Spec.ClusterIPs = []string{tc.address}
			if got := r.misplaced(s); got != tc.want {
				t.Errorf("misplaced is %t", got)
			}
		})
	}
	if (&ranges{}).misplaced(&corev1.Service{}) {
		t.Error("without ranges, one is misplaced")
	}
}
