package hosted

import (
	"testing"

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
		"no domain":                {Spec{Name: "a", ClusterDomain: "Cluster Local"}, "cluster domain"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := test.spec.withDefaults().validate()
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
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
