package hosted

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func load(t *testing.T, dir string, dnsNames ...string) *credentials {
	t.Helper()
	c, err := loadCredentials(dir, Spec{}.withDefaults(), dnsNames, []net.IP{net.IPv4(127, 0, 0, 1)})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

func TestCredentialsAreFoundAgain(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "pki")
	first, again := load(t, dir, "a"), load(t, dir, "a")
	g.Expect(again.authority).To(Equal(first.authority))
	g.Expect(again.signingKey).To(Equal(first.signingKey))
	g.Expect(again.admin).To(Equal(first.admin))
	g.Expect(again.server).To(Equal(first.server))
}

func TestCredentialsAreForTheOwnerOnly(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "pki")
	load(t, dir, "a")
	info, err := os.Stat(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))
	entries, err := os.ReadDir(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).NotTo(BeEmpty())
	for _, entry := range entries {
		info, err := entry.Info()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), entry.Name())
	}
}

func TestOnlyCertificatesAreRenewed(t *testing.T) {
	g := NewWithT(t)
	c := load(t, filepath.Join(t.TempDir(), "pki"), "a")
	ca, key, admin, server := c.authority, c.signingKey, c.admin, c.server

	g.Expect(c.renew(time.Now())).To(Succeed())
	g.Expect(c.admin).To(Equal(admin), "a young certificate is kept")

	g.Expect(c.renew(time.Now().Add(defaultValidity * 9 / 10))).To(Succeed())
	g.Expect(c.admin).NotTo(Equal(admin))
	g.Expect(c.server).NotTo(Equal(server))
	g.Expect(c.authority).To(Equal(ca))
	g.Expect(c.signingKey).To(Equal(key))
}

func TestServingCertificateFollowsItsNames(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "pki")
	before, after := load(t, dir, "a"), load(t, dir, "a", "b")
	g.Expect(after.server).NotTo(Equal(before.server))
	g.Expect(after.admin).To(Equal(before.admin))
	g.Expect(parseCertificate(after.server.CertPEM).DNSNames).To(Equal([]string{"a", "b"}))
}

func TestBrokenAuthorityIsNotReplaced(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "ca.pem")
	g.Expect(os.WriteFile(path, []byte("half a file"), 0o600)).To(Succeed())
	_, err := loadCredentials(dir, Spec{}.withDefaults(), []string{"a"}, nil)
	g.Expect(err).To(HaveOccurred())
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo("half a file"))
}

func TestCertificatesLiveAsLongAsTheyShould(t *testing.T) {
	g := NewWithT(t)
	day := 24 * time.Hour
	c, err := loadCredentials(t.TempDir(), Spec{CertificateValidity: day}, []string{"a"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	cert := parseCertificate(c.adminPair().CertPEM)
	g.Expect(cert.NotAfter).To(BeTemporally("~", time.Now().Add(day), time.Minute))
	g.Expect(c.renewalInterval()).To(BeNumerically("<", day/3), "or a certificate could end between two looks")
}

func TestKubeletClientCA(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "pki")
	together := load(t, dir, "a")
	g.Expect(together.kubeletClients).To(Equal(together.authority))

	spec := Spec{Name: "red", SeparateKubeletClientCA: true}.withDefaults()
	apart, err := loadCredentials(dir, spec, []string{"a"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(apart.authority).To(Equal(together.authority), "the cluster's own authority stays")
	shown := parseCertificate(apart.kubelet.CertPEM)
	g.Expect(shown.CheckSignatureFrom(parseCertificate(apart.kubeletClients.CertPEM))).To(Succeed(), "it is recreated")
	g.Expect(shown.CheckSignatureFrom(parseCertificate(apart.authority.CertPEM))).NotTo(Succeed())
	g.Expect(parseCertificate(apart.kubeletClients.CertPEM).Subject.CommonName).To(Equal("kubelet-client-ca:red"))

	again, err := loadCredentials(dir, spec, []string{"a"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.kubeletClients).To(Equal(apart.kubeletClients))
	g.Expect(again.kubelet).To(Equal(apart.kubelet))
}

// TestFrontProxy tests that the client certificate of the front proxy has an
// authority of its own, and that the published file contains no key.
func TestFrontProxy(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "pki")
	c := load(t, dir, "a")
	shown := parseCertificate(c.proxy.CertPEM)
	g.Expect(shown.Subject.CommonName).To(Equal("front-proxy-client"))
	g.Expect(shown.CheckSignatureFrom(parseCertificate(c.frontProxy.CertPEM))).To(Succeed())
	g.Expect(shown.CheckSignatureFrom(parseCertificate(c.authority.CertPEM))).NotTo(Succeed())
	g.Expect(shown.NotAfter).To(Equal(parseCertificate(c.frontProxy.CertPEM).NotAfter), "it needs no renewal while the apiserver runs")
	g.Expect(os.ReadFile(c.frontProxyCAFile())).To(Equal(c.frontProxy.CertPEM))

	again := load(t, dir, "a")
	g.Expect(again.frontProxy).To(Equal(c.frontProxy))
	g.Expect(again.proxy).To(Equal(c.proxy))
}
