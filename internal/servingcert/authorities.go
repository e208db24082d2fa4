package servingcert

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// authorities are those of a serving certificate. Clients trust all of them.
type authorities struct {
	// signer signs.
	signer pki.Authority
	// successor signs when clients have had time to trust it; zero for none.
	successor pki.Authority
	// former have signed before, as certificates in PEM: replicas and clients with
	// what they signed may not have followed yet.
	former []byte
}

// readAuthorities reads those of a Secret, without those that have expired. The
// signer is zero if the Secret does not hold a pair that can sign.
func readAuthorities(data map[string][]byte, now time.Time) authorities {
	successor := pki.Authority{CertPEM: data[successorKey], KeyPEM: data[successorKeyKey]}
	if !successor.CanSign(now) {
		successor = pki.Authority{}
	}
	trusted := certificates(data[AuthoritiesKey])
	if len(trusted) == 0 {
		return authorities{successor: successor}
	}
	all := authorities{signer: pki.Authority{CertPEM: encode(trusted[0]), KeyPEM: data[authorityKeyKey]}, successor: successor}
	if !all.signer.CanSign(now) {
		return authorities{successor: successor}
	}
	for _, certificate := range trusted[1:] {
		if each := encode(certificate); now.Before(certificate.NotAfter) && !slices.Equal(each, successor.CertPEM) {
			all.former = append(all.former, each...)
		}
	}
	return all
}

// data returns the content for a Secret.
func (a authorities) data() map[string][]byte {
	data := map[string][]byte{AuthoritiesKey: a.trusted(), authorityKeyKey: a.signer.KeyPEM}
	if a.hasSuccessor() {
		data[successorKey], data[successorKeyKey] = a.successor.CertPEM, a.successor.KeyPEM
	}
	return data
}

// trusted returns the certificates that clients trust.
func (a authorities) trusted() []byte {
	return slices.Concat(a.signer.CertPEM, a.successor.CertPEM, a.former)
}

func (a authorities) hasSuccessor() bool { return len(a.successor.CertPEM) > 0 }

// rotate returns the authorities after a step of a rotation, which they take by
// themselves as well when the life of the signer ends.
func (a authorities) rotate(step Step, now time.Time) (_ authorities, err error) {
	if len(a.signer.CertPEM) == 0 {
		a = authorities{signer: a.successor}
	}
	if len(a.signer.CertPEM) == 0 {
		if a.signer, err = newAuthority(now); err != nil {
			return authorities{}, err
		}
	}
	if !a.hasSuccessor() && (step == Start || pki.NeedsRenewal(a.signer.CertPEM, now)) {
		if a.successor, err = newAuthority(now); err != nil {
			return authorities{}, err
		}
	}
	if a.hasSuccessor() && (step == Switch || pki.IsEnding(a.signer.CertPEM, now)) {
		a = authorities{signer: a.successor, former: slices.Concat(a.signer.CertPEM, a.former)}
	}
	if step == Finish {
		a.former = nil
	}
	return a, nil
}

func newAuthority(now time.Time) (pki.Authority, error) {
	authority, err := pki.NewAuthority("virtualcluster-serving", authorityValidity, now)
	if err != nil {
		return pki.Authority{}, fmt.Errorf("make the authority: %w", err)
	}
	return authority, nil
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
