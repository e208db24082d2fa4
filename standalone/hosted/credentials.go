package hosted

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/keyutil"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	// defaultValidity is the default validity of certificates.
	defaultValidity = 365 * 24 * time.Hour
	// shortestValidity leaves time to renew certificates.
	shortestValidity = time.Minute
	// longestRenewalInterval is the maximum time between checks whether
	// certificates are about to expire.
	longestRenewalInterval = 12 * time.Hour
	// looksInALife is the minimum number of such checks within the validity of
	// a certificate.
	looksInALife = 12

	mastersGroup = "system:masters"
	// platformUser is the user of the platform's own clients.
	platformUser = "vc-platform"
)

// credentials has the keys and certificates of one control plane, stored in one
// directory. The authorities and the signing key are created once; the
// certificates that they sign are renewed in time.
type credentials struct {
	dir       string
	authority pki.Authority
	// kubeletClients signs the apiserver's client certificates for kubelets. It
	// is the authority itself unless the Spec separates them.
	kubeletClients pki.Authority
	// frontProxy signs the apiserver's client certificate for aggregated APIs,
	// and nothing else: a client with a certificate of it can impersonate any
	// user.
	frontProxy pki.Authority
	signingKey []byte
	dnsNames   []string
	ips        []net.IP
	validity   time.Duration

	mu                                      sync.RWMutex
	admin, platform, server, kubelet, proxy pki.KeyPair
	// platformKeys are the public keys of the platform's certificate and of the
	// one before, which may still be in use.
	platformKeys [2][]byte
}

// loadCredentials loads the credentials of a control plane from dir, and
// creates those that are missing. The serving certificate has these names and
// addresses.
func loadCredentials(dir string, spec Spec, dnsNames []string, ips []net.IP) (*credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the PKI: %w", err)
	}
	c := &credentials{dir: dir, dnsNames: dnsNames, ips: ips, validity: spec.CertificateValidity}
	var err error
	if c.authority, err = loadAuthority(c.authorityFile(), "kubernetes"); err != nil {
		return nil, err
	}
	c.kubeletClients = c.authority
	if spec.SeparateKubeletClientCA {
		// The name distinguishes the authorities of many control planes.
		if c.kubeletClients, err = loadAuthority(c.path("kubelet-client-ca.pem"), "kubelet-client-ca:"+spec.Name); err != nil {
			return nil, err
		}
	}
	if c.frontProxy, err = loadAuthority(c.path("front-proxy-ca.pem"), "front-proxy-ca:"+spec.Name); err != nil {
		return nil, err
	}
	if err := ensureFile(c.frontProxyCAFile(), c.frontProxy.CertPEM); err != nil {
		return nil, err
	}
	if c.signingKey, err = readOrMake(c.signingKeyFile(), newSigningKeyPEM); err != nil {
		return nil, err
	}
	verifyingKey, err := c.verifyingKeyPEM()
	if err != nil {
		return nil, err
	}
	if _, err := readOrMake(c.verifyingKeyFile(), func() ([]byte, error) { return verifyingKey, nil }); err != nil {
		return nil, err
	}
	return c, c.renew(time.Now())
}

// renewalInterval returns the interval at which to check whether a certificate
// is about to expire.
func (c *credentials) renewalInterval() time.Duration {
	return min(longestRenewalInterval, c.validity/looksInALife)
}

// loadAuthority loads an authority from a file, or creates it.
func loadAuthority(path, name string) (ca pki.Authority, err error) {
	data, err := readOrMake(path, func() ([]byte, error) {
		ca, err := pki.NewAuthority(name, authorityValidity, time.Now())
		return joinPEM(ca.CertPEM, ca.KeyPEM), err
	})
	ca.CertPEM, ca.KeyPEM = splitPEM(data)
	return ca, err
}

func newSigningKeyPEM() ([]byte, error) {
	key, _, err := pki.NewSigningKey()
	return key, err
}

// verifyingKeyPEM returns the public half of the signing key, which the
// apiserver requires in a separate file.
func (c *credentials) verifyingKeyPEM() ([]byte, error) {
	private, err := keyutil.ParsePrivateKeyPEM(c.signingKey)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.signingKeyFile(), err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in %s cannot sign", c.signingKeyFile())
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	return pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der}), err
}

func (c *credentials) path(file string) string { return filepath.Join(c.dir, file) }

func (c *credentials) authorityFile() string     { return c.path("ca.pem") }
func (c *credentials) servingFile() string       { return c.path("server.pem") }
func (c *credentials) signingKeyFile() string    { return c.path("sa.key") }
func (c *credentials) verifyingKeyFile() string  { return c.path("sa.pub") }
func (c *credentials) kubeletClientFile() string { return c.path("kubelet-client.pem") }
func (c *credentials) kubeletCAFile() string     { return c.path("kubelet-ca.pem") }

// frontProxyCAFile returns the path of the authority's certificate, without its
// key: the apiserver publishes the content.
func (c *credentials) frontProxyCAFile() string { return c.path("front-proxy-ca.crt") }
func (c *credentials) frontProxyFile() string   { return c.path(chain.FrontProxyUser + ".pem") }

// renew creates certificates that are missing, damaged, about to expire, of
// another authority, or for other names.
func (c *credentials) renew(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := func(name string) func(pki.Authority) (pki.KeyPair, error) {
		return func(signer pki.Authority) (pki.KeyPair, error) {
			return signer.Client(name, []string{mastersGroup}, c.validity, now)
		}
	}
	leaves := []struct {
		pair *pki.KeyPair
		leaf
	}{
		{&c.admin, leaf{path: c.path("admin.pem"), signer: c.authority, create: client("admin")}},
		{&c.platform, leaf{path: c.path("platform.pem"), signer: c.authority, create: client(platformUser)}},
		// Older versions did not separate the authority for kubelets.
		{&c.kubelet, leaf{path: c.kubeletClientFile(), signer: c.kubeletClients, create: client("kube-apiserver-kubelet-client")}},
		// Its validity is that of its authority, whose key is in the same
		// directory, so that the file need not be watched.
		{&c.proxy, leaf{path: c.frontProxyFile(), signer: c.frontProxy, create: func(signer pki.Authority) (pki.KeyPair, error) {
			return signer.Client(chain.FrontProxyUser, nil, authorityValidity, now)
		}}},
		{&c.server, servingLeaf(c.servingFile(), "kube-apiserver", c.authority, c.dnsNames, c.ips, c.validity, now)},
	}
	for _, each := range leaves {
		pair, err := each.renew(now)
		if err != nil {
			return err
		}
		*each.pair = pair
	}
	if key := parseCertificate(c.platform.CertPEM).RawSubjectPublicKeyInfo; !bytes.Equal(key, c.platformKeys[0]) {
		c.platformKeys = [2][]byte{key, c.platformKeys[0]}
	}
	return nil
}

func (c *credentials) platformPair() pki.KeyPair {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.platform
}

// isPlatform reports whether a connection was authenticated with a certificate
// of the platform. The key decides, which no one else has: users of the control
// plane can get a certificate with any name.
func (c *credentials) isPlatform(connection *tls.ConnectionState) bool {
	if connection == nil || len(connection.PeerCertificates) == 0 {
		return false
	}
	key := connection.PeerCertificates[0].RawSubjectPublicKeyInfo
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.ContainsFunc(c.platformKeys[:], func(own []byte) bool { return len(own) > 0 && bytes.Equal(own, key) })
}

func (c *credentials) adminPair() pki.KeyPair {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.admin
}

// kubeletCertKey returns the certificate and key for kubelets.
func (c *credentials) kubeletCertKey() (cert, key []byte) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.kubelet.CertPEM, c.kubelet.KeyPEM
}

// frontProxyCertKey returns the certificate and key for aggregated APIs.
func (c *credentials) frontProxyCertKey() (cert, key []byte) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.proxy.CertPEM, c.proxy.KeyPEM
}

// credentials is also the provider of the apiserver's serving certificate.
var _ dynamiccertificates.CertKeyContentProvider = (*credentials)(nil)

// Name returns the name of the certificate in the apiserver's log.
func (c *credentials) Name() string { return "serving certificate" }

// CurrentCertKeyContent returns the serving certificate and its key.
func (c *credentials) CurrentCertKeyContent() (cert, key []byte) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.server.CertPEM, c.server.KeyPEM
}

// AddListener does nothing: the apiserver reads the content again every minute
// anyway.
func (c *credentials) AddListener(dynamiccertificates.Listener) {}
