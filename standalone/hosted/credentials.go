package hosted

import (
	"crypto"
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
)

const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	// defaultValidity is how long certificates live if nothing is said.
	defaultValidity = 365 * 24 * time.Hour
	// longestRenewalInterval is how often a running control plane looks
	// whether its certificates near their end, at least.
	longestRenewalInterval = 12 * time.Hour
	// looksInALife is how often it looks while a certificate lives, at least.
	looksInALife = 12

	mastersGroup = "system:masters"
	// frontProxyClient is who passes requests on to aggregated APIs.
	frontProxyClient = "front-proxy-client"
)

// credentials are the keys and certificates of one control plane, kept under
// one directory. The authorities and the signing key are made once; the
// certificates that they sign are renewed in time.
type credentials struct {
	dir       string
	authority pki.Authority
	// kubeletClients signs what the apiserver shows to kubelets. It is the
	// authority itself unless that is to be kept apart.
	kubeletClients pki.Authority
	// frontProxy signs what the apiserver shows to aggregated APIs, and nothing
	// else: whoever has a certificate of it may say who the user is.
	frontProxy pki.Authority
	signingKey []byte
	dnsNames   []string
	ips        []net.IP
	validity   time.Duration

	mu                            sync.RWMutex
	admin, server, kubelet, proxy pki.KeyPair
}

// loadCredentials finds the credentials of a control plane in dir, and makes
// what is missing. The serving certificate is for the names and addresses.
func loadCredentials(dir string, spec Spec, dnsNames []string, ips []net.IP) (*credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the PKI: %w", err)
	}
	c := &credentials{dir: dir, dnsNames: dnsNames, ips: ips, validity: spec.CertificateValidity}
	var err error
	if c.authority, err = loadAuthority(c.path("ca.pem"), "kubernetes"); err != nil {
		return nil, err
	}
	c.kubeletClients = c.authority
	if spec.SeparateKubeletClientCA {
		// Its name tells authorities of many control planes apart.
		if c.kubeletClients, err = loadAuthority(c.path("kubelet-client-ca.pem"), "kubelet-client-ca:"+spec.Name); err != nil {
			return nil, err
		}
	}
	if c.frontProxy, err = loadAuthority(c.path("front-proxy-ca.pem"), "front-proxy-ca:"+spec.Name); err != nil {
		return nil, err
	}
	if _, err := readOrMake(c.frontProxyCAFile(), func() ([]byte, error) { return c.frontProxy.CertPEM, nil }); err != nil {
		return nil, err
	}
	if c.signingKey, err = readOrMake(c.signingKeyFile(), newSigningKeyPEM); err != nil {
		return nil, err
	}
	if _, err := readOrMake(c.verifyingKeyFile(), c.verifyingKeyPEM); err != nil {
		return nil, err
	}
	return c, c.renew(time.Now())
}

// renewalInterval is how often to look whether a certificate nears its end.
func (c *credentials) renewalInterval() time.Duration {
	return min(longestRenewalInterval, c.validity/looksInALife)
}

// loadAuthority finds an authority in a file, or makes it.
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

// verifyingKeyPEM is the public half of the signing key. The apiserver wants
// it in a file of its own.
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

func (c *credentials) signingKeyFile() string    { return c.path("sa.key") }
func (c *credentials) verifyingKeyFile() string  { return c.path("sa.pub") }
func (c *credentials) kubeletClientFile() string { return c.path("kubelet-client.pem") }
func (c *credentials) kubeletCAFile() string     { return c.path("kubelet-ca.pem") }

// frontProxyCAFile holds the authority's certificate alone: the apiserver
// shows all that is in it to everybody.
func (c *credentials) frontProxyCAFile() string { return c.path("front-proxy-ca.crt") }
func (c *credentials) frontProxyFile() string   { return c.path(frontProxyClient + ".pem") }

// renew makes the certificates that are missing, near their end, or for other
// names than they should be.
func (c *credentials) renew(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := func(authority pki.Authority, name string) func() (pki.KeyPair, error) {
		return func() (pki.KeyPair, error) {
			return authority.Client(name, []string{mastersGroup}, c.validity, now)
		}
	}
	leaves := []struct {
		file   string
		pair   *pki.KeyPair
		create func() (pki.KeyPair, error)
		fits   func(*x509.Certificate) bool
	}{
		{"admin.pem", &c.admin, client(c.authority, "admin"), nil},
		{"kubelet-client.pem", &c.kubelet, client(c.kubeletClients, "kube-apiserver-kubelet-client"), c.signedForKubelets},
		// It lives as long as its authority, whose key lies beside its own, so that nobody has to watch the file.
		{frontProxyClient + ".pem", &c.proxy, func() (pki.KeyPair, error) {
			return c.frontProxy.Client(frontProxyClient, nil, authorityValidity, now)
		}, nil},
		{"server.pem", &c.server, func() (pki.KeyPair, error) {
			return c.authority.Server("kube-apiserver", c.dnsNames, c.ips, c.validity, now)
		}, c.servesNames},
	}
	for _, leaf := range leaves {
		pair, err := renewLeaf(c.path(leaf.file), now, leaf.fits, leaf.create)
		if err != nil {
			return err
		}
		*leaf.pair = pair
	}
	return nil
}

func renewLeaf(path string, now time.Time, fits func(*x509.Certificate) bool, create func() (pki.KeyPair, error)) (pki.KeyPair, error) {
	if data, err := readFile(path); err == nil {
		pair := pki.KeyPair{}
		pair.CertPEM, pair.KeyPEM = splitPEM(data)
		if !pki.NeedsRenewal(pair.CertPEM, now) && (fits == nil || fits(parseCertificate(pair.CertPEM))) {
			return pair, nil
		}
	}
	pair, err := create()
	if err != nil {
		return pair, fmt.Errorf("make %s: %w", path, err)
	}
	return pair, writeFile(path, joinPEM(pair.CertPEM, pair.KeyPEM))
}

// parseCertificate returns an empty certificate for what it cannot read, which
// then fits nothing and is made anew.
func parseCertificate(data []byte) *x509.Certificate {
	if block, _ := pem.Decode(data); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return cert
		}
	}
	return &x509.Certificate{}
}

func (c *credentials) servesNames(cert *x509.Certificate) bool {
	return slices.Equal(cert.DNSNames, c.dnsNames) && slices.EqualFunc(cert.IPAddresses, c.ips, net.IP.Equal)
}

// signedForKubelets says whether a certificate is of the authority that signs
// what kubelets are shown. It has not always been one of its own.
func (c *credentials) signedForKubelets(cert *x509.Certificate) bool {
	return cert.CheckSignatureFrom(parseCertificate(c.kubeletClients.CertPEM)) == nil
}

func (c *credentials) adminPair() pki.KeyPair {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.admin
}

// credentials are also the provider of the apiserver's serving certificate.
var _ dynamiccertificates.CertKeyContentProvider = (*credentials)(nil)

// Name says in the apiserver's log what is served.
func (c *credentials) Name() string { return "serving certificate" }

// CurrentCertKeyContent is the serving certificate and its key.
func (c *credentials) CurrentCertKeyContent() (cert, key []byte) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.server.CertPEM, c.server.KeyPEM
}

// AddListener does nothing: the apiserver looks again every minute anyway.
func (c *credentials) AddListener(dynamiccertificates.Listener) {}
