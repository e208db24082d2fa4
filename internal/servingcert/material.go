package servingcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// The keys of the Secret. AuthoritiesKey has the certificate that signs first,
// and those before it that have not expired.
const (
	certificateKey  = "tls.crt"
	privateKey      = "tls.key"
	AuthoritiesKey  = "ca.crt"
	authorityKeyKey = "ca.key"
)

const (
	day = 24 * time.Hour
	// authorityValidity is long, since clients that an admin configures trust
	// the authority by its certificate.
	authorityValidity = 10 * 365 * day
	// validity is that of a serving certificate, which is renewed when a third
	// of it is left.
	validity = 90 * day
)

// Hosts are the names and addresses at which clients reach a server.
type Hosts struct {
	DNSNames []string
	IPs      []net.IP
}

// HostsOf sorts names and addresses.
func HostsOf(hosts ...string) Hosts {
	var sorted Hosts
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			sorted.IPs = append(sorted.IPs, ip)
		} else {
			sorted.DNSNames = append(sorted.DNSNames, host)
		}
	}
	return sorted
}

// material is what the Secret holds, in PEM.
type material struct {
	authorities  []byte
	authorityKey []byte
	serving      pki.KeyPair
}

// read returns the content of a Secret, which may be anything.
func read(data map[string][]byte) material {
	return material{
		authorities:  data[AuthoritiesKey],
		authorityKey: data[authorityKeyKey],
		serving:      pki.KeyPair{CertPEM: data[certificateKey], KeyPEM: data[privateKey]},
	}
}

// data returns the content for a Secret.
func (m material) data() map[string][]byte {
	return map[string][]byte{
		AuthoritiesKey: m.authorities, authorityKeyKey: m.authorityKey,
		certificateKey: m.serving.CertPEM, privateKey: m.serving.KeyPEM,
	}
}

// renew returns material by which hosts can be served, with as much of m as is
// good for it. An authority that is about to expire stays trusted beside its
// successor, because other replicas still serve what it signed.
func (m material) renew(hosts Hosts, now time.Time) (material, error) {
	authority, trusted := m.authority(now)
	if trusted == nil || pki.NeedsRenewal(authority.CertPEM, now) {
		next, err := pki.NewAuthority("virtualcluster-serving", authorityValidity, now)
		if err != nil {
			return material{}, fmt.Errorf("make the authority: %w", err)
		}
		authority, trusted = next, append(bytes.Clone(next.CertPEM), trusted...)
	}
	m.authorities, m.authorityKey = trusted, authority.KeyPEM
	if m.check(hosts, now) == nil && !pki.NeedsRenewal(m.serving.CertPEM, now) {
		return m, nil
	}
	var err error
	m.serving, err = authority.Server("virtualcluster", hosts.DNSNames, hosts.IPs, validity, now)
	return m, err
}

// authority returns the authority that signs, and all certificates that are
// trusted; none if the Secret does not hold a pair that can sign.
func (m material) authority(now time.Time) (pki.Authority, []byte) {
	certificates := certificates(m.authorities)
	if len(certificates) == 0 {
		return pki.Authority{}, nil
	}
	authority := pki.Authority{CertPEM: encode(certificates[0]), KeyPEM: m.authorityKey}
	if !certificates[0].IsCA || now.Before(certificates[0].NotBefore) {
		return pki.Authority{}, nil
	}
	// Signing checks that the certificate has not expired, that the key is its
	// own, and that both are of the kind that this program makes.
	if _, err := authority.Server("check", nil, nil, time.Minute, now); err != nil {
		return pki.Authority{}, nil
	}
	var trusted []byte
	for i, certificate := range certificates {
		if i == 0 || now.Before(certificate.NotAfter) {
			trusted = append(trusted, encode(certificate)...)
		}
	}
	return authority, trusted
}

var errNoCertificate = errors.New("no certificate in PEM found")

// check reports why hosts cannot be served by the material.
func (m material) check(hosts Hosts, now time.Time) error {
	pair, err := tls.X509KeyPair(m.serving.CertPEM, m.serving.KeyPEM)
	if err != nil {
		return fmt.Errorf("read the serving certificate: %w", err)
	}
	if pair.Leaf == nil {
		return errNoCertificate
	}
	names := append([]string(nil), hosts.DNSNames...)
	for _, ip := range hosts.IPs {
		names = append(names, ip.String())
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificates(m.authorities)[0])
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return fmt.Errorf("verify the serving certificate: %w", err)
		}
	}
	return nil
}

// certificates parses certificates in PEM, up to the first block that is none.
func certificates(data []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return all
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return all
		}
		all = append(all, certificate)
	}
}

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}
