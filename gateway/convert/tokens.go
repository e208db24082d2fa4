package convert

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
)

// Sealer seals the super cluster's tokens to continue a list: they hold the key
// of an object, perhaps of another tenant. A sealed token is bound to its list.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a sealer with a key of 32 random bytes, which all replicas
// of the gateway share.
func NewSealer(key []byte) (*Sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a sealer of tokens: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make a sealer of tokens: %w", err)
	}
	return &Sealer{aead: aead}, nil
}

// seal returns a token of the tenant for one of the super cluster.
func (s *Sealer) seal(token, list string) string {
	sealed := s.aead.Seal(nil, nil, []byte(token), []byte(list)) //nolint:gosec // the AEAD has a random nonce
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// open undoes seal for the same list.
func (s *Sealer) open(sealed, list string) (string, error) {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", err
	}
	token, err := s.aead.Open(nil, nil, data, []byte(list))
	return string(token), err
}
