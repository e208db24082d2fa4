package hosted

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestSpecIsValidated(t *testing.T) {
	for name, test := range map[string]struct {
		spec Spec
		want string
	}{
		"the least that is needed": {Spec{Name: "a"}, ""},
		"no name":                  {Spec{}, "cannot name a control plane"},
		"a path":                   {Spec{Name: "../a"}, "cannot name a control plane"},
		"a dot":                    {Spec{Name: "a.b"}, "cannot name a control plane"},
		"no CIDR":                  {Spec{Name: "a", ServiceCIDR: "10.0.0.1"}, "service CIDR"},
		"the smallest CIDR":        {Spec{Name: "a", ServiceCIDR: "10.0.0.0/29"}, ""},
		"a CIDR without room":      {Spec{Name: "a", ServiceCIDR: "10.0.0.1/32"}, "too small"},
		"an address of IPv6":       {Spec{Name: "a", ServiceCIDR: "fd00::/112"}, ""},
		"a long name":              {Spec{Name: strings.Repeat("a", 64)}, "cannot name a control plane"},
		"capitals":                 {Spec{Name: "A"}, "cannot name a control plane"},
		"certificates that ended":  {Spec{Name: "a", CertificateValidity: -time.Hour}, "certificates cannot live for -1h"},
		"certificates too short":   {Spec{Name: "a", CertificateValidity: time.Second}, "1m0s at least"},
		"no domain":                {Spec{Name: "a", ClusterDomain: "Cluster Local"}, "cluster domain"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := test.spec.withDefaults(DefaultServiceCIDR).validate()
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// TestAddressesOfACluster: a range of the least size has no address for the DNS.
func TestAddressesOfACluster(t *testing.T) {
	for cidr, want := range map[string]string{
		"": "10.96.0.10", "10.7.0.0/16": "10.7.0.10", "10.7.0.0/28": "10.7.0.10", "10.7.0.0/29": "<nil>", "fd00::/112": "fd00::a",
	} {
		c := &ControlPlane{spec: Spec{Name: "a", ServiceCIDR: cidr}.withDefaults(DefaultServiceCIDR), outside: endpoint{address: "10.0.0.1:6443"}}
		if got := c.DNSAddress().String(); got != want {
			t.Errorf("the DNS of %q is at %s, want %s", cidr, got, want)
		}
		if c.ClusterDomain() != "cluster.local" || c.Endpoint() != "https://10.0.0.1:6443" || c.ServerName() != "a.vc.internal" {
			t.Errorf("got %s, %s and %s", c.ClusterDomain(), c.Endpoint(), c.ServerName())
		}
	}
}

func TestServingNamesOfARangeThatIsNone(t *testing.T) {
	_, _, err := Spec{Name: "a", ServiceCIDR: "all"}.servingNames("127.0.0.1")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("all")))
}

func TestServingNamesCoverEveryWayIn(t *testing.T) {
	g := NewWithT(t)
	spec := Spec{Name: "a", ServiceCIDR: "10.7.0.0/16", ClusterDomain: "my.domain", ExtraSANs: []string{"a.example.com", "192.0.2.1"}}
	names, ips, err := spec.servingNames("192.0.2.2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(ContainElements("a.vc.internal", "kubernetes.default.svc.my.domain", "localhost", "a.example.com"))
	texts := make([]string, 0, len(ips))
	for _, ip := range ips {
		texts = append(texts, ip.String())
	}
	g.Expect(texts).To(ConsistOf("10.7.0.1", "127.0.0.1", "192.0.2.2", "192.0.2.1"))
}
