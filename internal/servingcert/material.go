package servingcert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// The keys of the Secret. AuthoritiesKey has the certificates that clients trust:
// that of the authority that signs, of its successor if there is one, and of those
// before it that have not expired.
const (
	certificateKey  = "tls.crt"
	privateKey      = "tls.key"
	AuthoritiesKey  = "ca.crt"
	authorityKeyKey = "ca.key"
	successorKey    = "next-ca.crt"
	successorKeyKey = "next-ca.key"
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

// material is what the Secret holds.
type material struct {
	authorities

	serving pki.KeyPair
}

// read returns the content of a Secret, which may be anything.
func read(data map[string][]byte, now time.Time) material {
	return material{
		authorities: readAuthorities(data, now),
		serving:     pki.KeyPair{CertPEM: data[certificateKey], KeyPEM: data[privateKey]},
	}
}

// data returns the content for a Secret.
func (m material) data() map[string][]byte {
	data := m.authorities.data()
	data[certificateKey], data[privateKey] = m.serving.CertPEM, m.serving.KeyPEM
	return data
}

// renew returns material by which hosts can be served, with as much of m as is
// good for it, after a step of a rotation.
func (m material) renew(hosts Hosts, step Step, now time.Time) (_ material, err error) {
	if m.authorities, err = m.rotate(step, now); err != nil {
		return material{}, err
	}
	if m.check(hosts, now) == nil && !pki.NeedsRenewal(m.serving.CertPEM, now) {
		return m, nil
	}
	m.serving, err = m.signer.Server("virtualcluster", hosts.DNSNames, hosts.IPs, validity, now)
	return m, err
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
	roots.AppendCertsFromPEM(m.signer.CertPEM)
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return fmt.Errorf("verify the serving certificate: %w", err)
		}
	}
	return nil
}
