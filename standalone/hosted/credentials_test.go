package hosted

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// keysIn is a keyring of one control plane, with the keys in a directory.
type keysIn string

func (k keysIn) Open(context.Context, string) (Keys, error) { return directory(k), nil }
func (keysIn) Delete(context.Context, string) error         { return nil }

func load(t *testing.T, dir string, dnsNames ...string) *credentials {
	t.Helper()
	c, err := loadCredentials(t.Context(), keysIn(dir), Spec{}.withDefaults(DefaultServiceCIDR), servingNames{dnsNames, []net.IP{net.IPv4(127, 0, 0, 1)}})
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

	g.Expect(c.renew(t.Context(), time.Now())).To(Succeed())
	g.Expect(c.admin).To(Equal(admin), "a young certificate is kept")

	g.Expect(c.renew(t.Context(), time.Now().Add(defaultValidity*9/10))).To(Succeed())
	g.Expect(c.admin).NotTo(Equal(admin))
	g.Expect(c.server).NotTo(Equal(server))
	g.Expect(c.authority).To(Equal(ca))
	g.Expect(c.signingKey).To(Equal(key))
}

// TestGatewayAuthorities: a control plane trusts the successor from a start on, long
// before the gateway's certificate is of it.
func TestGatewayAuthorities(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	isOf := func(c *credentials, i int) bool {
		return parseCertificate(c.gatewayClient.CertPEM).CheckSignatureFrom(parseCertificate(c.gateway[i].CertPEM)) == nil
	}
	old, err := pki.NewAuthority("gateway-ca:a", authorityValidity, time.Now().Add(-authorityValidity*3/4))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(dir, gatewayCAFile), joinPEM(old.CertPEM, old.KeyPEM), 0o600)).To(Succeed())
	c := load(t, dir, "a")
	g.Expect(c.gateway).To(HaveLen(2))
	g.Expect(c.gateway[0]).To(Equal(old))
	g.Expect(isOf(c, 0)).To(BeTrue())
	g.Expect(load(t, dir, "a").gateway).To(Equal(c.gateway), "one successor")

	g.Expect(c.renew(t.Context(), time.Now().Add(authorityValidity/8))).To(Succeed())
	g.Expect(isOf(c, 1)).To(BeTrue(), "an eighth is left")
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
	_, err := loadCredentials(t.Context(), keysIn(dir), Spec{}.withDefaults(DefaultServiceCIDR), servingNames{dnsNames: []string{"a"}})
	g.Expect(err).To(HaveOccurred())
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo("half a file"))
}

// TestUnusableCertificatesAreReplaced: the apiserver would not start with them,
// or its clients would not trust it, until an admin finds the file.
func TestUnusableCertificatesAreReplaced(t *testing.T) {
	remove := func(file string) func(Gomega, *credentials) {
		return func(g Gomega, c *credentials) { g.Expect(os.Remove(c.path(file))).To(Succeed()) }
	}
	write := func(file string, data func(*credentials) []byte) func(Gomega, *credentials) {
		return func(g Gomega, c *credentials) { g.Expect(os.WriteFile(c.path(file), data(c), 0o600)).To(Succeed()) }
	}
	for name, test := range map[string]struct {
		damage   func(Gomega, *credentials)
		replaced []string
	}{
		"untouched":             {damage: func(Gomega, *credentials) {}},
		"a lost file":           {damage: remove("admin.pem"), replaced: []string{"admin"}},
		"an empty file":         {damage: write("server.pem", func(*credentials) []byte { return nil }), replaced: []string{"server"}},
		"a certificate alone":   {damage: write("server.pem", func(c *credentials) []byte { return c.server.CertPEM }), replaced: []string{"server"}},
		"a key alone":           {damage: write("admin.pem", func(c *credentials) []byte { return c.admin.KeyPEM }), replaced: []string{"admin"}},
		"the key of another":    {damage: write("admin.pem", func(c *credentials) []byte { return joinPEM(c.admin.CertPEM, c.server.KeyPEM) }), replaced: []string{"admin"}},
		"a new authority":       {damage: remove("ca.pem"), replaced: []string{"authority", "admin", "kubelet", "server"}},
		"a new front proxy":     {damage: remove("front-proxy-ca.pem"), replaced: []string{"frontProxy", "proxy"}},
		"a stale front proxy":   {damage: write("front-proxy-ca.crt", func(c *credentials) []byte { return c.authority.CertPEM })},
		"a lost public CA file": {damage: remove("front-proxy-ca.crt")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := filepath.Join(t.TempDir(), "pki")
			before := load(t, dir, "a")
			test.damage(g, before)
			after := load(t, dir, "a")

			was, is := pairsOf(before), pairsOf(after)
			for what := range is {
				g.Expect(is[what].CertPEM).NotTo(BeEmpty(), what)
				matcher := BeEquivalentTo(was[what].CertPEM)
				if slices.Contains(test.replaced, what) {
					matcher = Not(matcher)
				}
				g.Expect(is[what].CertPEM).To(matcher, what)
			}
			for what, signer := range map[string]string{
				"admin": "authority", "kubelet": "authority", "server": "authority", "proxy": "frontProxy",
			} {
				_, err := tls.X509KeyPair(is[what].CertPEM, is[what].KeyPEM)
				g.Expect(err).NotTo(HaveOccurred(), what)
				g.Expect(parseCertificate(is[what].CertPEM).CheckSignatureFrom(parseCertificate(is[signer].CertPEM))).To(Succeed(), what)
			}
			g.Expect(os.ReadFile(after.path(publicFrontProxyCAFile))).To(Equal(after.frontProxy.CertPEM))
			g.Expect(after.signingKey).To(Equal(before.signingKey), "tokens stay valid")
		})
	}
}

// pairsOf are the authorities and certificates by what they are for.
func pairsOf(c *credentials) map[string]pki.KeyPair {
	return map[string]pki.KeyPair{
		"authority": pki.KeyPair(c.authority), "frontProxy": pki.KeyPair(c.frontProxy),
		"admin": c.admin, "kubelet": c.kubelet, "proxy": c.proxy, "server": c.server,
	}
}

// TestCredentialsThatCannotBeLoaded: the error names the file, and no file that
// cannot be made again is replaced.
func TestCredentialsThatCannotBeLoaded(t *testing.T) {
	certificate, err := pki.NewAuthority("other", time.Hour, time.Now())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, test := range map[string]struct{ file, content, want string }{
		"an authority without a key":  {"ca.pem", string(certificate.CertPEM), "admin.pem"},
		"a damaged front proxy":       {"front-proxy-ca.pem", "damaged", "front-proxy-client.pem"},
		"a damaged kubelet authority": {"kubelet-client-ca.pem", "damaged", "kubelet-client.pem"},
		"a damaged signing key":       {"sa.key", "damaged", "sa.key"},
		"a certificate as the key":    {"sa.key", string(certificate.CertPEM), "sa.key"},
		"a public key as the key":     {"sa.key", publicKeyPEM(t, certificate), "sa.key"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			path := filepath.Join(dir, test.file)
			g.Expect(os.WriteFile(path, []byte(test.content), 0o600)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(dir, "sa.pub"), nil, 0o600)).To(Succeed(), "it does not stand for the signing key")
			spec := Spec{Name: "red", SeparateKubeletClientCA: true}.withDefaults(DefaultServiceCIDR)
			for range 2 {
				_, err := loadCredentials(t.Context(), keysIn(dir), spec, servingNames{dnsNames: []string{"a"}})
				g.Expect(err).To(MatchError(ContainSubstring(filepath.Join(dir, test.want))))
				g.Expect(os.ReadFile(path)).To(BeEquivalentTo(test.content))
			}
		})
	}
	for _, file := range []string{"", "ca.pem", "kubelet-client-ca.pem", "front-proxy-ca.pem", "sa.key", "sa.pub", "server.pem"} {
		t.Run("in the place of "+filepath.Join("pki", file), func(t *testing.T) {
			g := NewWithT(t)
			dir := filepath.Join(t.TempDir(), "pki")
			path := filepath.Join(dir, file)
			if file == "" {
				g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
			} else {
				g.Expect(os.MkdirAll(filepath.Join(path, "directory"), 0o700)).To(Succeed())
			}
			_, err := loadCredentials(t.Context(), keysIn(dir), Spec{SeparateKubeletClientCA: true}.withDefaults(DefaultServiceCIDR), servingNames{dnsNames: []string{"a"}})
			g.Expect(err).To(MatchError(ContainSubstring(path)))
		})
	}
}

func publicKeyPEM(t *testing.T, of pki.Authority) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(parseCertificate(of.CertPEM).PublicKey)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestCertificatesLiveAsLongAsTheyShould(t *testing.T) {
	g := NewWithT(t)
	day := 24 * time.Hour
	c, err := loadCredentials(t.Context(), keysIn(t.TempDir()), Spec{CertificateValidity: day}, servingNames{dnsNames: []string{"a"}})
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

	spec := Spec{Name: "red", SeparateKubeletClientCA: true}.withDefaults(DefaultServiceCIDR)
	apart, err := loadCredentials(t.Context(), keysIn(dir), spec, servingNames{dnsNames: []string{"a"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(apart.authority).To(Equal(together.authority), "the cluster's own authority stays")
	shown := parseCertificate(apart.kubelet.CertPEM)
	g.Expect(shown.CheckSignatureFrom(parseCertificate(apart.kubeletClients.CertPEM))).To(Succeed(), "it is recreated")
	g.Expect(shown.CheckSignatureFrom(parseCertificate(apart.authority.CertPEM))).NotTo(Succeed())
	g.Expect(parseCertificate(apart.kubeletClients.CertPEM).Subject.CommonName).To(Equal("kubelet-client-ca:red"))

	again, err := loadCredentials(t.Context(), keysIn(dir), spec, servingNames{dnsNames: []string{"a"}})
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
	g.Expect(os.ReadFile(c.path(publicFrontProxyCAFile))).To(Equal(c.frontProxy.CertPEM))

	again := load(t, dir, "a")
	g.Expect(again.frontProxy).To(Equal(c.frontProxy))
	g.Expect(again.proxy).To(Equal(c.proxy))
}
