package pki

import (
	"encoding/pem"
	"slices"
	"time"
)

// Authorities are those of one purpose, the oldest first. All are trusted, and
// one signs. A successor is trusted long before it signs, for servers that read
// the authorities only when they start.
type Authorities []Authority

// ParseAuthorities reads certificates and their keys, in the same order, without
// those that can sign nothing.
func ParseAuthorities(certsPEM, keysPEM []byte, now time.Time) Authorities {
	certs, keys := blocks(certsPEM), blocks(keysPEM)
	var all Authorities
	for i := range min(len(certs), len(keys)) {
		authority := Authority{CertPEM: certs[i], KeyPEM: keys[i]}
		if authority.CanSign(now) {
			all = append(all, authority)
		}
	}
	return all
}

// Renew returns the authorities, with a successor if the last is to be renewed.
func (all Authorities) Renew(commonName string, validity time.Duration, now time.Time) (Authorities, error) {
	if len(all) > 0 && !NeedsRenewal(all[len(all)-1].CertPEM, now) {
		return all, nil
	}
	successor, err := NewAuthority(commonName, validity, now)
	if err != nil {
		return nil, err
	}
	return append(slices.Clip(all), successor), nil
}

// Signer returns the authority that signs: the oldest of which a sixth of its
// life is left. A successor is made when a third is left.
func (all Authorities) Signer(now time.Time) Authority {
	for _, authority := range all[:len(all)-1] {
		if !IsEnding(authority.CertPEM, now) {
			return authority
		}
	}
	return all[len(all)-1]
}

// CertsPEM returns all certificates.
func (all Authorities) CertsPEM() []byte {
	var certs []byte
	for _, authority := range all {
		certs = append(certs, authority.CertPEM...)
	}
	return certs
}

// KeysPEM returns the keys of all certificates.
func (all Authorities) KeysPEM() []byte {
	var keys []byte
	for _, authority := range all {
		keys = append(keys, authority.KeyPEM...)
	}
	return keys
}

// CanSign reports whether the authority is one that this package makes, and has
// not expired.
func (a Authority) CanSign(now time.Time) bool {
	cert, _, err := a.parse()
	return err == nil && cert.IsCA && !now.Before(cert.NotBefore) && now.Before(cert.NotAfter)
}

// blocks returns the blocks of a PEM file.
func blocks(data []byte) [][]byte {
	var all [][]byte
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return all
		}
		all = append(all, encode(block.Type, block.Bytes))
	}
}
