package hosted

import (
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

// TestFamilies: pods reach a control plane by a Service of the IP family of its
// address for pods.
func TestFamilies(t *testing.T) {
	four, six := net.IPv4(10, 1, 2, 3), net.ParseIP("fd00::1")
	for name, test := range map[string]struct {
		pods  net.IP
		cidr  string
		fails bool
	}{
		"no pods, IPv4": {nil, DefaultServiceCIDR, false},
		"no pods, IPv6": {nil, DefaultServiceCIDRv6, false},
		"IPv4":          {four, DefaultServiceCIDR, false},
		"IPv6":          {six, DefaultServiceCIDRv6, false},
		"IPv6 at IPv4":  {four, DefaultServiceCIDRv6, true},
		"IPv4 at IPv6":  {six, DefaultServiceCIDR, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := &Host{opts: Options{PodAddress: test.pods}}
			err := h.checkFamily(Spec{Name: "a", ServiceCIDR: test.cidr})
			g.Expect(err != nil).To(Equal(test.fails))
			if test.fails {
				g.Expect(err).To(MatchError(ErrFamily))
			}
			g.Expect(h.checkFamily(Spec{Name: "a", ServiceCIDR: h.defaultServiceCIDR()})).To(Succeed())
		})
	}
}
