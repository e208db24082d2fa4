package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/internal/share"
	"github.com/virtualcluster/virtualcluster/syncer/provider"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// clients configures the connections to apiservers: all requests are counted,
// and if the tenants are shared, requests fail when the replica's lease
// expires.
type clients struct {
	metrics instruments
	// super is the configuration of the super cluster's clients.
	super *rest.Config
	// replica is nil if the tenants are not shared.
	replica *share.Replica
}

func newClients(super *rest.Config, opts Options, metrics instruments) (*clients, error) {
	c := &clients{metrics: metrics, super: rest.CopyConfig(super)}
	counted := metrics.requests.Wrap(requests.Super)
	if opts.ShareTenants {
		leases := rest.CopyConfig(super)
		leases.Wrap(counted)
		var err error
		if c.replica, err = share.New(leases, opts.ShareNamespace, name, share.DefaultTiming(), metrics.share); err != nil {
			return nil, err
		}
	}
	c.guard(c.super)
	c.super.Wrap(requests.Patient)
	c.super.Wrap(counted)
	return c, nil
}

// prepare prepares the configuration of a tenant's clients.
func (c *clients) prepare(tenant *rest.Config) {
	tenant.UserAgent = c.super.UserAgent
	c.guard(tenant)
	tenant.Wrap(c.metrics.requests.Wrap(requests.Tenant))
}

// guard adds the fence of the replica. It must be the first to wrap a
// transport, so that it is next to the connection.
func (c *clients) guard(config *rest.Config) {
	if c.replica != nil {
		c.replica.Guard(config)
	}
}

// share makes the replica share the tenants, if they are shared: no tenant is
// served before it starts.
func (c *clients) share(ctx context.Context, mgr manager.Manager, tenants *provider.Provider) error {
	if c.replica == nil {
		return nil
	}
	c.replica.Serve(func(ctx context.Context, shares share.Shares) error { return tenants.Serve(ctx, shares) })
	if err := tenants.Serve(ctx, share.Shares{}); err != nil {
		return fmt.Errorf("serve no tenants initially: %w", err)
	}
	return mgr.Add(c.replica)
}
