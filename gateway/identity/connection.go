package identity

import (
	"context"
	"crypto/x509"
	"sync/atomic"
	"time"

	"github.com/virtualcluster/virtualcluster/gateway/tenants"
)

// connection remembers how the certificate of a client was verified: a
// signature costs as much as all else that the gateway does for a request. Its
// validity, and whether the tenant still has the CA, are checked for each.
type connection struct{ last atomic.Pointer[verified] }

// verified is a certificate that was verified by the CA of a tenant, and is
// valid for a time.
type verified struct {
	by          *tenants.Tenant
	caller      Caller
	from, until time.Time
}

type connectionKey struct{}

// WithConnection returns the context of a new connection.
func WithConnection(ctx context.Context) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

// connectionOf returns the connection of a request; one that remembers nothing
// outside of a server.
func connectionOf(ctx context.Context) *connection {
	if found, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return found
	}
	return &connection{}
}

// byCertificate returns the caller by the certificate of the connection, which
// the CA of one tenant can have signed.
func (c *connection) byCertificate(chain []*x509.Certificate, finder Finder, now time.Time) (Caller, error) {
	t := issuerOf(chain, finder)
	if t == nil {
		return Caller{}, ErrCertificate
	}
	if last := c.last.Load(); last != nil && last.by == t && !now.Before(last.from) && !now.After(last.until) {
		return last.caller, nil
	}
	caller, certificates, err := verify(chain, t, now)
	if err != nil {
		return Caller{}, err
	}
	next := &verified{by: t, caller: caller, from: chain[0].NotBefore, until: chain[0].NotAfter}
	for _, certificate := range certificates {
		if certificate.NotBefore.After(next.from) {
			next.from = certificate.NotBefore
		}
		if certificate.NotAfter.Before(next.until) {
			next.until = certificate.NotAfter
		}
	}
	c.last.Store(next)
	return caller, nil
}
