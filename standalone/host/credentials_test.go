package host

import (
	"crypto/tls"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

func TestParseCredentials(t *testing.T) {
	g := NewWithT(t)
	authority, err := pki.NewAuthority("store", time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	one, err := authority.Client("vc-host", nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	other, err := authority.Client("vc-host", nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	good := map[string][]byte{"ca.crt": authority.CertPEM, "tls.crt": one.CertPEM, "tls.key": one.KeyPEM}
	for name, test := range map[string]struct {
		change map[string][]byte
		want   string
	}{
		"good":               {nil, ""},
		"no authority":       {map[string][]byte{"ca.crt": nil}, "ca.crt"},
		"a damaged one":      {map[string][]byte{"ca.crt": []byte("damaged")}, "ca.crt"},
		"no key":             {map[string][]byte{"tls.key": nil}, "tls.crt and tls.key"},
		"the key of another": {map[string][]byte{"tls.key": other.KeyPEM}, "tls.crt and tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data := maps.Clone(good)
			maps.Copy(data, test.change)
			credentials, err := parseCredentials(data)
			if test.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
				g.Expect(err.Error()).NotTo(ContainSubstring("PRIVATE KEY"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			config := credentials.config()
			shown, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
			g.Expect(err).NotTo(HaveOccurred())
			first := shown.Leaf

			next, err := parseCredentials(map[string][]byte{"ca.crt": authority.CertPEM, "tls.crt": other.CertPEM, "tls.key": other.KeyPEM})
			g.Expect(err).NotTo(HaveOccurred())
			credentials.client.Store(next.client.Load())
			shown, err = config.GetClientCertificate(&tls.CertificateRequestInfo{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(shown.Leaf.Equal(first)).To(BeFalse(), "a renewed certificate is used")
		})
	}
}
