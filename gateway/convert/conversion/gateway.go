// Package conversion converts custom resources of converted tenants between the
// versions of their CRDs. The super cluster calls the gateway instead of the
// tenant's webhook, and the gateway calls that with what the tenant knows of the
// objects.
package conversion

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Gateway is how the super cluster reaches the gateway for the CRDs of a tenant.
type Gateway struct {
	URL string
	// CA verifies it, in PEM; empty for the CAs of the super cluster.
	CA []byte
	// Key is secret, and the same in all replicas.
	Key []byte
}

// secretBytes is the length of the secret in a URL.
const secretBytes = 32

// Hook returns where the super cluster calls the gateway for a CRD of a tenant. The
// super cluster's apiserver does not say who it is, so that the URL has a secret.
// It is the same at each write.
func (g Gateway) Hook(clusterKey, crd string) (document.Hook, error) {
	secret, err := hkdf.Key(sha256.New, g.Key, nil, "the conversion webhook of "+crd, secretBytes)
	if err != nil {
		return document.Hook{}, fmt.Errorf("make the secret of a conversion webhook: %w", err)
	}
	path := strings.Join([]string{clusterKey, crd, base64.RawURLEncoding.EncodeToString(secret)}, "/")
	return document.Hook{URL: strings.TrimSuffix(g.URL, "/") + names.ConversionPath + path, CA: g.CA}, nil
}
