package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// authorityKey is the key of the authority of a store's members in the Secret
// with its credentials. The others are those of Secrets of type tls.
const authorityKey = "ca.crt"

// errUnknownCredentials is returned if the super cluster did not respond.
var errUnknownCredentials = errors.New("cannot read the credentials now")

// storeCredentials are the credentials of a store. Those of the client change
// while they are in use.
type storeCredentials struct {
	authority []byte
	roots     *x509.CertPool
	client    atomic.Pointer[tls.Certificate]
}

// readCredentials reads the credentials of a store.
func (s *storeController) readCredentials(ctx context.Context, secretName string) (*storeCredentials, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: s.namespace, Name: secretName}
	switch err := s.live.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	case err != nil:
		return nil, fmt.Errorf("%w: get Secret %s: %w", errUnknownCredentials, key, err)
	}
	credentials, err := parseCredentials(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("use Secret %s: %w", key, err)
	}
	return credentials, nil
}

func parseCredentials(data map[string][]byte) (*storeCredentials, error) {
	c := &storeCredentials{authority: data[authorityKey], roots: x509.NewCertPool()}
	if !c.roots.AppendCertsFromPEM(c.authority) {
		return nil, errors.New(authorityKey + " has no certificate")
	}
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		// The error of the library does not quote the key.
		return nil, fmt.Errorf("%s and %s are no certificate with its key: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	c.client.Store(&pair)
	return c, nil
}

// config returns the configuration of TLS, which follows changes of the client's
// certificate.
func (c *storeCredentials) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: c.roots,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.client.Load(), nil },
	}
}
