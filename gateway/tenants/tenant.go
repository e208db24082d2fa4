// Package tenants has the tenants that the gateway serves, by all that
// identifies them.
package tenants

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/members"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

// Tenant is a tenant as the gateway knows it. It does not change.
type Tenant struct {
	// Key is the cluster key.
	Key string
	// Down: the control plane does not run, and no request wakes it.
	Down bool
	// Opaque: the apiserver may accept tokens that the gateway does not recognize.
	// The super cluster recognizes its own, and those of converted tenants.
	Opaque bool
	// Members are the users of the super cluster who reach it.
	Members members.List
	// Way leads to the apiserver.
	Way *forward.Way
	// Converted serves the requests of a tenant without a control plane; nil for
	// others.
	Converted http.Handler
	// Accounts recognizes the tokens of a tenant without a control plane; nil for
	// others.
	Accounts Accounts

	access gatewayaccess.Access
	// clients verify client certificates.
	clients []*x509.Certificate
	roots   *x509.CertPool
	// keyIDs are those of the keys that sign its tokens.
	keyIDs []string
	// hidden: it only recognizes credentials, and cannot be found by its name.
	hidden bool
}

// Accounts recognizes tokens of service accounts.
type Accounts interface {
	// Authenticate returns the user of a token; nil for a token that is none. The
	// client has a remote address.
	Authenticate(ctx context.Context, token, remote string) (user.Info, error)
}

// New makes a tenant. One that is converted has no apiserver, and what converts
// its requests is to be set. dialExternal connects to an external control plane.
func New(key string, access gatewayaccess.Access, dialExternal egress.Dial, down bool) (*Tenant, error) {
	t := &Tenant{Key: key, Down: down, access: access, roots: x509.NewCertPool()}
	if len(access.ClientCA) > 0 {
		authorities, err := cert.ParseCertsPEM(access.ClientCA)
		if err != nil {
			return nil, errors.New("read the client CA: it has no certificate in PEM")
		}
		t.trust(authorities)
	}
	if len(access.TokenKeys) > 0 {
		keys, err := keyutil.ParsePublicKeysPEM(access.TokenKeys)
		if err != nil {
			return nil, fmt.Errorf("read the keys of tokens: %w", err)
		}
		for _, key := range keys {
			id, err := keyID(key)
			if err != nil {
				return nil, err
			}
			t.keyIDs = append(t.keyIDs, id)
		}
	}
	t.Opaque = len(t.keyIDs) == 0 && !access.IsConverted()
	if access.IsConverted() {
		t.Way = forward.NewConvertedWay()
		return t, nil
	}
	var err error
	t.Way, err = forward.NewWay(access, dialExternal)
	return t, err
}

// NewSuper makes the super cluster, which is found as a tenant is, and has the
// authorities of its client certificates. Unless it is open, its users reach
// only what they are members of.
func NewSuper(way *forward.Way, authorities []*x509.Certificate, open bool) *Tenant {
	t := &Tenant{Key: resolve.System, Way: way, roots: x509.NewCertPool(), hidden: !open}
	t.trust(authorities)
	return t
}

// trust adds authorities of client certificates.
func (t *Tenant) trust(authorities []*x509.Certificate) {
	for _, authority := range authorities {
		if authority.IsCA && len(authority.SubjectKeyId) > 0 {
			t.clients = append(t.clients, authority)
			t.roots.AddCert(authority)
		}
	}
}

// keyID returns the kid of tokens that a key verifies, as apiservers write it.
func keyID(public any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("read a key of tokens: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// IsConverted reports whether the tenant has no control plane. What converts its
// requests may not be set yet.
func (t *Tenant) IsConverted() bool { return t.access.IsConverted() }

// TakesConnections reports whether connections are passed on to the apiserver
// unread. The owner of an external one could relay them to any address.
func (t *Tenant) TakesConnections() bool { return t.Converted == nil && !t.access.IsExternal() }

// Roots verify the client certificates of the tenant's users.
func (t *Tenant) Roots() *x509.CertPool { return t.roots }

// OpenIDConfiguration returns the description of the issuer of the tenant's
// tokens, in JSON; nil if the issuer is not public.
func (t *Tenant) OpenIDConfiguration() []byte { return t.access.OpenIDConfiguration }

// KeySet returns the keys that verify these tokens, in JSON; nil as well.
func (t *Tenant) KeySet() []byte { return t.access.KeySet }

// KeyIDs returns the kid of the tokens of the tenant.
func (t *Tenant) KeyIDs() []string { return t.keyIDs }

// isLike reports whether requests can continue with another state of the tenant.
func (t *Tenant) isLike(other *Tenant) bool {
	return t.Key == other.Key && t.access.Lasting().Equal(other.access.Lasting())
}
