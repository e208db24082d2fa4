package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The PEM blocks that are written. Keys are in PKCS #8, which every part of
// Kubernetes reads.
const (
	blockCertificate = "CERTIFICATE"
	blockPrivateKey  = "PRIVATE KEY"
	blockPublicKey   = "PUBLIC KEY"
)

var errMismatch = errors.New("the authority's private key does not belong to its certificate: restore the pair that was made together")

// NewSigningKey makes a key that signs service-account tokens, in PEM.
func NewSigningKey() (privatePEM, publicPEM []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if privatePEM, err = encodeKey(key); err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode public key: %w", err)
	}
	return privatePEM, encode(blockPublicKey, der), nil
}

// newTemplate is what all certificates have in common.
func newTemplate(subject pkix.Name, validity time.Duration, now time.Time) (*x509.Certificate, error) {
	if validity <= 0 {
		return nil, fmt.Errorf("a certificate needs a positive validity, not %s", validity)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	return &x509.Certificate{
		Subject:               subject,
		SerialNumber:          serial.Add(serial, big.NewInt(1)),
		NotBefore:             now.Add(-skew).UTC(),
		NotAfter:              now.Add(validity).UTC(),
		BasicConstraintsValid: true,
	}, nil
}

// sign makes the certificate of key as the template says.
func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (KeyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign certificate of %q: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return KeyPair{}, err
	}
	return KeyPair{CertPEM: encode(blockCertificate, der), KeyPEM: keyPEM}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make private key: %w", err)
	}
	return key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return encode(blockPrivateKey, der), nil
}

func encode(block string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der})
}

// parseCertificate reads the first certificate of a PEM file.
func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != blockCertificate {
		return nil, errors.New("no certificate in PEM found")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse certificate: %w", err)
	}
	return cert, nil
}

// parseKey reads a private key that this package made. Errors never quote the data.
func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != blockPrivateKey {
		return nil, errors.New("no private key in PEM found")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key is not in PKCS #8")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the private key is a %T, not an ECDSA key", parsed)
	}
	return key, nil
}
