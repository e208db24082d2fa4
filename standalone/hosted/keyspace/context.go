package keyspace

import (
	"context"
	"errors"
	"fmt"
)

// ErrNoTenant means that a context has no tenant.
var ErrNoTenant = errors.New("the context has no tenant")

type contextKey struct{}

// claim is the tenant of a context, or why it has none.
type claim struct {
	tenant string
	err    error
}

// NewContext returns a context that belongs to a tenant. The tenant of a
// context never changes: a context for another tenant belongs to neither.
func NewContext(parent context.Context, tenant string) context.Context {
	next := claim{tenant: tenant, err: validate(tenant)}
	if had, ok := parent.Value(contextKey{}).(claim); ok {
		switch {
		case had.err != nil:
			next = had
		case had.tenant != tenant:
			next = claim{err: fmt.Errorf("the context of tenant %q cannot become that of tenant %q", had.tenant, tenant)}
		}
	}
	return context.WithValue(parent, contextKey{}, next)
}

// Tenant returns the tenant of a context. The error is ErrNoTenant if none was
// set, and another one if the tenant is ambiguous.
func Tenant(ctx context.Context) (string, error) {
	found, ok := ctx.Value(contextKey{}).(claim)
	if !ok {
		return "", ErrNoTenant
	}
	return found.tenant, found.err
}
