package hosted

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/keyutil"

	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
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
	// adminUser is the user of an admin of the control plane.
	adminUser = "admin"
	// platformUser is the user of the platform's own clients.
	platformUser = "vc-platform"
)

// The files of the keys of a control plane. One holds a certificate together with
// its key, or a key alone, so that a crash cannot leave half of a pair behind.
const (
	authorityFile      = "ca.pem"
	servingFile        = "server.pem"
	adminFile          = "admin.pem"
	platformFile       = "platform.pem"
	signingKeyFile     = "sa.key"
	verifyingKeyFile   = "sa.pub"
	kubeletClientsFile = "kubelet-client-ca.pem"
	kubeletClientFile  = "kubelet-client.pem"
	kubeletCAFile      = "kubelet-ca.pem"
	frontProxyCAFile   = "front-proxy-ca.pem"
	frontProxyFile     = chain.FrontProxyUser + ".pem"
	gatewayCAFile      = "gateway-ca.pem"
	gatewayFile        = "gateway.pem"
	// publicFrontProxyCAFile and publicAuthorityFile have certificates without
	// keys: their content is published.
	publicFrontProxyCAFile = "front-proxy-ca.crt"
	publicAuthorityFile    = "ca.crt"
)

// commitAttempts is how often keys that other hosts change at the same time are
// opened again.
const commitAttempts = 5

// credentials has the keys and certificates of one control plane. The authorities and the signing key are created once; the
// certificates that they sign are renewed in time.
type credentials struct {
	keyring Keyring
	name    string
	// path returns where a file is.
	path      func(file string) string
	authority pki.Authority
	// kubeletClients signs the apiserver's client certificates for kubelets. It
	// is the authority itself unless the Spec separates them.
	kubeletClients pki.Authority
	// frontProxy signs the apiserver's client certificate for aggregated APIs,
	// and nothing else: a client with a certificate of it can impersonate any
	// user.
	frontProxy pki.Authority
	// gateway sign the client certificate of the gateway, and nothing else: the
	// control plane takes users from its headers. It trusts those of its start.
	gateway      pki.Authorities
	signingKey   []byte
	verifyingKey []byte
	serving      servingNames
	validity     time.Duration

	mu                                      sync.RWMutex
	admin, platform, server, kubelet, proxy pki.KeyPair
	gatewayClient                           pki.KeyPair
	// platformKeys are the public keys of the platform's certificate and of the
	// one before, which may still be in use.
	platformKeys [2][]byte
	// ends has when certificates expire, by their kind.
	ends map[string]time.Time
}

// servingNames are the names and addresses of a serving certificate.
type servingNames struct {
	dnsNames []string
	ips      []net.IP
}

// loadCredentials loads the credentials of a control plane from a keyring, and
// creates those that are missing.
func loadCredentials(ctx context.Context, keyring Keyring, spec Spec, serving servingNames) (*credentials, error) {
	c := &credentials{keyring: keyring, name: spec.Name, serving: serving, validity: spec.CertificateValidity}
	err := c.change(ctx, func(keys Keys) error {
		c.path = keys.Locate
		if err := c.loadAuthorities(keys, spec); err != nil {
			return err
		}
		if err := c.loadSigningKey(keys); err != nil {
			return err
		}
		return c.renewIn(keys, time.Now())
	})
	return c, err
}

// change changes the keys. If another host has changed them in between, it
// starts again.
func (c *credentials) change(ctx context.Context, change func(Keys) error) error {
	for attempt := 1; ; attempt++ {
		keys, err := c.keyring.Open(ctx, c.name)
		if err != nil {
			return err
		}
		if err := change(keys); err != nil {
			return err
		}
		if err := keys.Commit(ctx); !errors.Is(err, ErrKeysChanged) || attempt == commitAttempts {
			return err
		}
	}
}

func (c *credentials) loadAuthorities(keys Keys, spec Spec) (err error) {
	if c.authority, err = loadAuthority(keys, authorityFile, "kubernetes"); err != nil {
		return err
	}
	c.kubeletClients = c.authority
	if spec.SeparateKubeletClientCA {
		// The name distinguishes the authorities of many control planes.
		if c.kubeletClients, err = loadAuthority(keys, kubeletClientsFile, "kubelet-client-ca:"+spec.Name); err != nil {
			return err
		}
	}
	if c.frontProxy, err = loadAuthority(keys, frontProxyCAFile, "front-proxy-ca:"+spec.Name); err != nil {
		return err
	}
	if c.gateway, err = loadAuthorities(keys, gatewayCAFile, "gateway-ca:"+spec.Name, time.Now()); err != nil {
		return err
	}
	if err := ensureFile(keys, publicFrontProxyCAFile, c.frontProxy.CertPEM); err != nil {
		return err
	}
	switch {
	case len(spec.KubeletCA) > 0:
		return ensureFile(keys, kubeletCAFile, spec.KubeletCA)
	case spec.NodeAuthorization:
		return ensureFile(keys, kubeletCAFile, c.authority.CertPEM)
	}
	return nil
}

func (c *credentials) loadSigningKey(keys Keys) (err error) {
	if c.signingKey, err = readOrMake(keys, signingKeyFile, newSigningKeyPEM); err != nil {
		return err
	}
	verifyingKey, err := verifyingKeyPEM(c.signingKey)
	if err != nil {
		return fmt.Errorf("read %s: %w", keys.Locate(signingKeyFile), err)
	}
	c.verifyingKey, err = readOrMake(keys, verifyingKeyFile, func() ([]byte, error) { return verifyingKey, nil })
	return err
}

// renewalInterval returns the interval at which to check whether a certificate
// is about to expire.
func (c *credentials) renewalInterval() time.Duration {
	return min(longestRenewalInterval, c.validity/looksInALife)
}

// loadAuthority loads an authority from a file, or creates it.
func loadAuthority(keys Keys, file, name string) (ca pki.Authority, err error) {
	data, err := readOrMake(keys, file, func() ([]byte, error) {
		ca, err := pki.NewAuthority(name, authorityValidity, time.Now())
		return joinPEM(ca.CertPEM, ca.KeyPEM), err
	})
	ca.CertPEM, ca.KeyPEM = splitPEM(data)
	return ca, err
}

// loadAuthorities loads authorities from a file, with a successor of which the
// time has come, or creates the first one.
func loadAuthorities(keys Keys, file, name string, now time.Time) (pki.Authorities, error) {
	data, err := keys.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", keys.Locate(file), err)
	}
	certs, private := splitPEM(data)
	all, err := pki.ParseAuthorities(certs, private, now).Renew(name, authorityValidity, now)
	if err != nil {
		return nil, fmt.Errorf("renew %s: %w", keys.Locate(file), err)
	}
	return all, ensureFile(keys, file, joinPEM(all.CertsPEM(), all.KeysPEM()))
}

func newSigningKeyPEM() ([]byte, error) {
	key, _, err := pki.NewSigningKey()
	return key, err
}

// verifyingKeyPEM returns the public half of a signing key, which the apiserver
// requires in a separate file.
func verifyingKeyPEM(signingKey []byte) ([]byte, error) {
	private, err := keyutil.ParsePrivateKeyPEM(signingKey)
	if err != nil {
		return nil, err
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	return pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der}), err
}

// setServing has the serving certificate replaced by one with these names, at the
// next renewal.
func (c *credentials) setServing(names servingNames) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving = names
}

// renew renews certificates that are about to expire.
func (c *credentials) renew(ctx context.Context, now time.Time) error {
	return c.change(ctx, func(keys Keys) error { return c.renewIn(keys, now) })
}

// renewIn creates certificates that are missing, damaged, about to expire, of
// another authority, or for other names.
func (c *credentials) renewIn(keys Keys, now time.Time) error {
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
		{&c.admin, leaf{file: adminFile, signer: c.authority, create: client(adminUser)}},
		{&c.platform, leaf{file: platformFile, signer: c.authority, create: client(platformUser)}},
		// Older versions did not separate the authority for kubelets.
		{&c.kubelet, leaf{file: kubeletClientFile, signer: c.kubeletClients, create: client("kube-apiserver-kubelet-client")}},
		// Its validity is that of its authority, whose key is in the same
		// place, so that the file need not be watched.
		{&c.proxy, leaf{file: frontProxyFile, signer: c.frontProxy, create: func(signer pki.Authority) (pki.KeyPair, error) {
			return signer.Client(chain.FrontProxyUser, nil, authorityValidity, now)
		}}},
		{&c.gatewayClient, leaf{file: gatewayFile, signer: c.gateway.Signer(now), create: func(signer pki.Authority) (pki.KeyPair, error) {
			return signer.Client(gatewayaccess.User, nil, c.validity, now)
		}}},
		{&c.server, servingLeaf(servingFile, "kube-apiserver", c.authority, c.serving.dnsNames, c.serving.ips, c.validity, now)},
	}
	for _, each := range leaves {
		pair, err := each.renew(keys, now)
		if err != nil {
			return err
		}
		*each.pair = pair
	}
	c.ends = map[string]time.Time{
		kindAuthority: endOf(c.authority.CertPEM, c.kubeletClients.CertPEM, c.frontProxy.CertPEM),
		kindServer:    endOf(c.server.CertPEM),
		kindClient:    endOf(c.admin.CertPEM, c.platform.CertPEM, c.kubelet.CertPEM, c.proxy.CertPEM),
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

// gatewayAccess returns what the gateway needs of the control plane.
func (c *credentials) gatewayAccess(at endpoint) gatewayaccess.Access {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return gatewayaccess.Access{
		Server: at.url(), ServerName: at.serverName, CA: c.authority.CertPEM, ClientCA: c.authority.CertPEM, TokenKeys: c.verifyingKey,
		Certificate: c.gatewayClient.CertPEM, Key: c.gatewayClient.KeyPEM,
	}
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
