package store

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// The keys of the Secrets.
const (
	authoritiesKey    = "ca.crt"
	authoritiesKeyKey = "ca.key"
	certificateKey    = "tls.crt"
	privateKey        = "tls.key"
)

const (
	day = 24 * time.Hour
	// authorityValidity is long, since etcd reads the authorities only when it
	// starts: a successor is trusted for a year and a half before it signs.
	authorityValidity = 10 * 365 * day
	// validity is that of a certificate. etcd reads its own at each handshake.
	validity = 90 * day
)

// renewAuthorities returns the content of the Secret of the authorities.
func renewAuthorities(data map[string][]byte, now time.Time) (map[string][]byte, error) {
	authorities, err := pki.ParseAuthorities(data[authoritiesKey], data[authoritiesKeyKey], now).
		Renew("virtualcluster-store", authorityValidity, now)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{authoritiesKey: authorities.CertsPEM(), authoritiesKeyKey: authorities.KeysPEM()}, nil
}

// certificate describes one that the authorities sign.
type certificate struct {
	hosts  []string
	usages []x509.ExtKeyUsage
	issue  func(pki.Authority, time.Time) (pki.KeyPair, error)
}

// ofMembers is the certificate of all members, as servers of clients and of each
// other, and as clients of each other.
func ofMembers(s Store) certificate {
	return certificate{
		hosts:  s.hosts(),
		usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		issue: func(by pki.Authority, now time.Time) (pki.KeyPair, error) {
			return by.Peer(s.Service.Name, s.hosts(), validity, now)
		},
	}
}

// ofClient is the certificate of vc-host.
func ofClient() certificate {
	return certificate{
		usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		issue: func(by pki.Authority, now time.Time) (pki.KeyPair, error) {
			return by.Client("vc-host", nil, validity, now)
		},
	}
}

// renew returns the content of the Secret of a certificate, with a new one
// unless that in data is good.
func (c certificate) renew(data map[string][]byte, authorities pki.Authorities, now time.Time) (map[string][]byte, error) {
	signer := authorities.Signer(now)
	pair := pki.KeyPair{CertPEM: data[certificateKey], KeyPEM: data[privateKey]}
	if !c.isGood(pair, signer, now) {
		var err error
		if pair, err = c.issue(signer, now); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{authoritiesKey: authorities.CertsPEM(), certificateKey: pair.CertPEM, privateKey: pair.KeyPEM}, nil
}

// isGood reports whether a pair is the certificate, and need not be renewed.
func (c certificate) isGood(pair pki.KeyPair, signer pki.Authority, now time.Time) bool {
	parsed, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil || pki.NeedsRenewal(pair.CertPEM, now) || !slices.Equal(parsed.Leaf.DNSNames, c.hosts) {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(signer.CertPEM)
	for _, usage := range c.usages {
		options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now}
		if _, err := parsed.Leaf.Verify(options); err != nil {
			return false
		}
	}
	return true
}
