package egress

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// directory is a table of holders.
type directory map[string]Holder

func (d directory) Holder(address netip.Addr) Holder { return d[address.String()] }

func policy() *Policy {
	return &Policy{
		Directory: directory{
			"10.1.0.1": {Pods: []string{"red"}},
			"10.1.0.2": {Pods: []string{"blue"}},
			"10.1.0.3": {Pods: []string{""}},
			"10.1.0.4": {Pods: []string{"red", "blue"}},
			"10.1.0.5": {Pods: []string{"red", "red"}},
			"10.9.0.1": {Node: true},
			"10.9.0.2": {Node: true, Pods: []string{"red"}},
			"fd00::1":  {Pods: []string{"red"}},
		},
		Outside:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("0.0.0.0/1")},
		Internal: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.96.0.0/16")},
		Machine:  func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("10.7.7.7")}, nil },
		Metrics:  counters(),
	}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		to   string
		want Reason
	}{
		"a pod of the tenant":                         {"10.1.0.1", ""},
		"one in IPv6":                                 {"fd00::1", ""},
		"one written as IPv6":                         {"::ffff:10.1.0.1", ""},
		"two pods of the tenant":                      {"10.1.0.5", ""},
		"another tenant's pod":                        {"10.1.0.2", Foreign},
		"a pod of the platform":                       {"10.1.0.3", Foreign},
		"a pod of the tenant and of another":          {"10.1.0.4", Foreign},
		"an address for pods that none has":           {"10.1.9.9", Foreign},
		"a Service's address":                         {"10.96.0.1", Foreign},
		"another tenant's pod, behind NAT64":          {"64:ff9b::a01:2", Foreign},
		"a node":                                      {"10.9.0.1", Platform},
		"a pod of the tenant in its node's network":   {"10.9.0.2", Platform},
		"this machine":                                {"10.7.7.7", Platform},
		"what the admin allows":                       {"10.200.0.1", ""},
		"what the admin allows in IPv6":               {"2001:db8::7", ""},
		"what the admin does not allow":               {"203.0.113.7", Outside},
		"what the admin does not allow, behind NAT64": {"64:ff9b::cb00:7107", Outside},
		"IPv6 that the admin does not allow":          {"2a00::1", Outside},
		"loopback, even if the admin allows it":       {"127.0.0.1", Reserved},
		"loopback, another of its addresses":          {"127.8.9.10", Reserved},
		"loopback in IPv6":                            {"::1", Reserved},
		"loopback, mapped":                            {"::ffff:127.0.0.1", Reserved},
		"loopback, compatible":                        {"::127.0.0.1", Reserved},
		"loopback, translated":                        {"::ffff:0:127.0.0.1", Reserved},
		"loopback, behind NAT64":                      {"64:ff9b::127.0.0.1", Reserved},
		"loopback, behind a network's own NAT64":      {"64:ff9b:1::127.0.0.1", Reserved},
		"loopback, behind 6to4":                       {"2002:7f00:1::1", Reserved},
		"loopback, behind Teredo":                     {"2001:0:7f00:1::1", Reserved},
		"the unspecified address":                     {"0.0.0.0", Reserved},
		"the unspecified address in IPv6":             {"::", Reserved},
		"metadata":                                    {"169.254.169.254", Reserved},
		"metadata, mapped":                            {"::ffff:169.254.169.254", Reserved},
		"metadata, behind NAT64":                      {"64:ff9b::169.254.169.254", Reserved},
		"metadata of AWS in IPv6":                     {"fd00:ec2::254", Reserved},
		"metadata of Alibaba Cloud":                   {"100.100.100.200", Reserved},
		"link-local in IPv6":                          {"fe80::1", Reserved},
		"an address with a zone":                      {"2001:db8::7%eth0", Reserved},
		"multicast":                                   {"224.0.0.1", Reserved},
		"multicast in IPv6":                           {"ff02::1", Reserved},
		"broadcast":                                   {"255.255.255.255", Reserved},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policy().decide("red", netip.MustParseAddr(tc.to)); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.to, got, tc.want)
			}
		})
	}
	if got := policy().decide("red", netip.Addr{}); got != Reserved {
		t.Errorf("no address: got %q", got)
	}
}

func TestDecideWithoutKnowingTheMachine(t *testing.T) {
	p := policy()
	p.Machine = func() ([]netip.Addr, error) { return nil, net.ErrClosed }
	if got := p.decide("red", netip.MustParseAddr("10.200.0.1")); got != Platform {
		t.Errorf("got %q, want %q", got, Platform)
	}
}

func TestParseOutside(t *testing.T) {
	got, err := ParseOutside([]string{"203.0.113.7/24", "0.0.0.0/0", "2001:db8::/32"})
	if err != nil || fmt.Sprint(got) != "[203.0.113.0/24 0.0.0.0/0 2001:db8::/32]" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, cidr := range []string{"", "203.0.113.7", "example.com/24", "127.0.0.0/8", "127.0.0.1/32", "169.254.169.254/32", "fe80::/64", "::1/128", "::ffff:10.0.0.0/104"} {
		if got, err := ParseOutside([]string{cidr}); err == nil {
			t.Errorf("%q: got %v, want an error", cidr, got)
		}
	}
}
