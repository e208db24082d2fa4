package hosted

import (
	"context"
	"net"
	"time"

	"github.com/go-logr/logr"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// ServingCertificate is the certificate of a server beside the control planes,
// with an authority of its own, stored in one directory. It is renewed in time.
type ServingCertificate struct {
	name      string
	keys      directory
	dnsNames  []string
	ips       []net.IP
	authority pki.Authority
}

// LoadServingCertificate loads the certificate of a server from dir, and
// creates what is missing. It has these names and addresses.
func LoadServingCertificate(dir, name string, dnsNames []string, ips ...net.IP) (*ServingCertificate, error) {
	s := &ServingCertificate{keys: directory(dir), name: name, dnsNames: dnsNames, ips: ips}
	var err error
	if s.authority, err = loadAuthority(s.keys, authorityFile, name+"-ca"); err != nil {
		return nil, err
	}
	if err := ensureFile(s.keys, publicAuthorityFile, s.CA()); err != nil {
		return nil, err
	}
	return s, s.renew(time.Now())
}

// CA returns the authority that clients verify the certificate with, in PEM.
func (s *ServingCertificate) CA() []byte { return s.authority.CertPEM }

// CAFile returns the path of the authority's certificate, without its key.
func (s *ServingCertificate) CAFile() string { return s.keys.Locate(publicAuthorityFile) }

// File returns the path of the certificate and its key.
func (s *ServingCertificate) File() string { return s.keys.Locate(servingFile) }

// KeepRenewed renews the certificate before it expires, until ctx ends. It logs
// failures and retries for months.
func (s *ServingCertificate) KeepRenewed(ctx context.Context, log logr.Logger) {
	ticker := time.NewTicker(longestRenewalInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := s.renew(now); err != nil {
				log.Error(err, "Failed to renew a serving certificate, will retry", "certificate", s.File())
			}
		}
	}
}

func (s *ServingCertificate) renew(now time.Time) error {
	_, err := servingLeaf(servingFile, s.name, s.authority, s.dnsNames, s.ips, defaultValidity, now).renew(s.keys, now)
	return err
}
