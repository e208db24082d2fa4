package hosted

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestServingCertificate(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "agent")
	made, err := LoadServingCertificate(dir, "agent", []string{"agent.example"}, net.IPv4(127, 0, 0, 1))
	g.Expect(err).NotTo(HaveOccurred())
	first := verified(g, made)

	found, err := LoadServingCertificate(dir, "agent", []string{"agent.example"}, net.IPv4(127, 0, 0, 1))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(verified(g, found)).To(Equal(first), "it is found again")

	g.Expect(found.renew(time.Now().Add(defaultValidity * 9 / 10))).To(Succeed())
	g.Expect(found.CA()).To(Equal(made.CA()))
	g.Expect(verified(g, found)).NotTo(Equal(first))

	moved, err := LoadServingCertificate(dir, "agent", []string{"agent.example"}, net.IPv4(127, 0, 0, 2))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(moved.CA()).To(Equal(made.CA()))
	g.Expect(verified(g, moved).IPAddresses).To(ConsistOf(WithTransform(net.IP.String, Equal("127.0.0.2"))))
	g.Expect(verified(g, moved).DNSNames).To(ConsistOf("agent.example"))

	renamed, err := LoadServingCertificate(dir, "agent", []string{"other.example"}, net.IPv4(127, 0, 0, 2))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(verified(g, renamed).DNSNames).To(ConsistOf("other.example"))
}

// verified is the certificate in the file, which its authority has signed.
func verified(g Gomega, s *ServingCertificate) *x509.Certificate {
	pair, err := tls.LoadX509KeyPair(s.File(), s.File())
	g.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(s.CA())).To(BeTrue())
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: pair.Leaf.NotBefore.Add(time.Minute)})
	g.Expect(err).NotTo(HaveOccurred())
	return pair.Leaf
}
