package hosted

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// leaf is a certificate with its key in a file, which is renewed in time.
type leaf struct {
	file   string
	signer pki.Authority
	create func(signer pki.Authority) (pki.KeyPair, error)
	// fits reports whether a certificate is for the right names; nil for any.
	fits func(*x509.Certificate) bool
}

// servingLeaf is the certificate of a server that is reached by the names and
// addresses.
func servingLeaf(
	file, name string, signer pki.Authority, dnsNames []string, ips []net.IP, validity time.Duration, now time.Time,
) leaf {
	return leaf{
		file: file, signer: signer,
		create: func(signer pki.Authority) (pki.KeyPair, error) {
			return signer.Server(name, dnsNames, ips, validity, now)
		},
		fits: func(cert *x509.Certificate) bool {
			return slices.Equal(cert.DNSNames, dnsNames) && slices.EqualFunc(cert.IPAddresses, ips, net.IP.Equal)
		},
	}
}

// renew returns the certificate in the file. If that is not usable any more, it
// is replaced.
func (l leaf) renew(keys Keys, now time.Time) (pki.KeyPair, error) {
	if data, err := keys.Read(l.file); err == nil {
		pair := pki.KeyPair{}
		pair.CertPEM, pair.KeyPEM = splitPEM(data)
		if l.isUsable(pair, now) {
			return pair, nil
		}
	}
	pair, err := l.create(l.signer)
	if err != nil {
		return pair, fmt.Errorf("create %s: %w", keys.Locate(l.file), err)
	}
	return pair, keys.Write(l.file, joinPEM(pair.CertPEM, pair.KeyPEM))
}

// isUsable reports whether a certificate has its key, is of the right authority
// and names, and has enough of its life left.
func (l leaf) isUsable(pair pki.KeyPair, now time.Time) bool {
	if _, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM); err != nil || pki.NeedsRenewal(pair.CertPEM, now) {
		return false
	}
	cert := parseCertificate(pair.CertPEM)
	return cert.CheckSignatureFrom(parseCertificate(l.signer.CertPEM)) == nil && (l.fits == nil || l.fits(cert))
}

// parseCertificate parses a certificate. It returns an empty one, which is then
// recreated, if it cannot be parsed.
func parseCertificate(data []byte) *x509.Certificate {
	if block, _ := pem.Decode(data); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return cert
		}
	}
	return &x509.Certificate{}
}
