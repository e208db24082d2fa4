package host

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-logr/logr"
)

const (
	// resolveInterval is the interval of resolving a name below the domain, and
	// resolveTimeout limits it.
	resolveInterval = 5 * time.Minute
	resolveTimeout  = 10 * time.Second
	// anyKey has the form of a cluster key, and is none.
	anyKey = "any-000000-tenant"
)

// domainWatch logs whether names below the domain of control planes resolve. The
// DNS of clients may say otherwise, so that nothing else depends on it.
type domainWatch struct {
	domain string
	lookup func(ctx context.Context, host string) ([]string, error)
	log    logr.Logger
}

// Start implements manager.Runnable.
func (d domainWatch) Start(ctx context.Context) error {
	resolved := true
	ticker := time.NewTicker(resolveInterval)
	defer ticker.Stop()
	for {
		resolved = d.check(ctx, resolved)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// check reports whether a name resolves, and logs that if it is not as before.
func (d domainWatch) check(ctx context.Context, before bool) bool {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	_, err := d.lookup(ctx, anyKey+"."+d.domain)
	var failed *net.DNSError
	switch resolved := err == nil; {
	case !resolved && ctx.Err() == nil && before && errors.As(err, &failed):
		d.log.Info("Names of control planes do not resolve here: create a record *.DOMAIN, unless the clients' DNS has one",
			"domain", d.domain, "error", failed.Err)
		return false
	case resolved && !before:
		d.log.Info("Names of control planes resolve", "domain", d.domain)
		return true
	}
	return before
}
