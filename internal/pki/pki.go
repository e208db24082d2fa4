// Package pki creates the certificates and keys of a tenant's control plane. It
// has no state: the program that runs the control plane stores them and creates
// them once. A new authority or signing key would invalidate every credential
// of the tenant.
package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"
)

// skew is how far the clocks of those who verify a certificate may be behind.
const skew = 5 * time.Minute

// KeyPair is a certificate and its private key, in PEM.
type KeyPair struct{ CertPEM, KeyPEM []byte }

// Authority is a certificate authority, in PEM.
type Authority struct{ CertPEM, KeyPEM []byte }

// NewAuthority makes a self-signed certificate authority.
func NewAuthority(commonName string, validity time.Duration, now time.Time) (Authority, error) {
	key, err := newKey()
	if err != nil {
		return Authority{}, err
	}
	template, err := newTemplate(pkix.Name{CommonName: commonName}, validity, now)
	if err != nil {
		return Authority{}, err
	}
	template.IsCA = true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	pair, err := sign(template, template, key, key)
	return Authority(pair), err
}

// Client makes a certificate by which a client is known to Kubernetes as the
// user commonName in the groups.
func (a Authority) Client(commonName string, groups []string, validity time.Duration, now time.Time) (KeyPair, error) {
	return a.issue(validity, now, func(template *x509.Certificate) {
		template.Subject = pkix.Name{CommonName: commonName, Organization: groups}
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

// Server makes a certificate of a server that is reached by the names and addresses.
func (a Authority) Server(
	commonName string, dnsNames []string, ips []net.IP, validity time.Duration, now time.Time,
) (KeyPair, error) {
	return a.issue(validity, now, func(template *x509.Certificate) {
		template.Subject = pkix.Name{CommonName: commonName}
		template.DNSNames = dnsNames
		template.IPAddresses = ips
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
}

// Peer makes a certificate of a server that is reached by the names, and that
// connects to others of its kind.
func (a Authority) Peer(commonName string, dnsNames []string, validity time.Duration, now time.Time) (KeyPair, error) {
	return a.issue(validity, now, func(template *x509.Certificate) {
		template.Subject = pkix.Name{CommonName: commonName}
		template.DNSNames = dnsNames
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	})
}

// NeedsRenewal reports whether less than a third of a certificate's life is
// left. A certificate that cannot be read needs it too.
func NeedsRenewal(certPEM []byte, now time.Time) bool { return hasLess(certPEM, 3, now) }

// IsEnding reports whether less than a sixth of an authority's life is left: the
// successor that was made when a third was left signs.
func IsEnding(certPEM []byte, now time.Time) bool { return hasLess(certPEM, 6, now) }

// hasLess reports whether less than a part of a certificate's life is left.
func hasLess(certPEM []byte, part time.Duration, now time.Time) bool {
	cert, err := parseCertificate(certPEM)
	if err != nil {
		return true
	}
	life := cert.NotAfter.Sub(cert.NotBefore)
	return cert.NotAfter.Sub(now) < life/part
}

// NotAfter returns when a certificate expires.
func NotAfter(certPEM []byte) (time.Time, error) {
	cert, err := parseCertificate(certPEM)
	if err != nil {
		return time.Time{}, err
	}
	return cert.NotAfter, nil
}

// issue makes a leaf certificate, which never outlives the authority: clients
// would see an expired chain, and the leaf would not show that it is time to
// renew.
func (a Authority) issue(validity time.Duration, now time.Time, describe func(*x509.Certificate)) (KeyPair, error) {
	caCert, caKey, err := a.parse()
	if err != nil {
		return KeyPair{}, err
	}
	template, err := newTemplate(pkix.Name{}, validity, now)
	if err != nil {
		return KeyPair{}, err
	}
	if !caCert.NotAfter.After(now) {
		return KeyPair{}, fmt.Errorf("the authority %q expired at %s: nothing can be signed by it",
			caCert.Subject.CommonName, caCert.NotAfter.Format(time.RFC3339))
	}
	describe(template)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.NotAfter.After(caCert.NotAfter) {
		template.NotAfter = caCert.NotAfter
	}
	key, err := newKey()
	if err != nil {
		return KeyPair{}, err
	}
	return sign(template, caCert, key, caKey)
}

// parse reads the authority and checks that the key is the certificate's.
func (a Authority) parse() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	cert, err := parseCertificate(a.CertPEM)
	if err != nil {
		return nil, nil, err
	}
	key, err := parseKey(a.KeyPEM)
	if err != nil {
		return nil, nil, err
	}
	if public, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(&key.PublicKey) {
		return nil, nil, errMismatch
	}
	return cert, key, nil
}
