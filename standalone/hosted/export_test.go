package hosted

import (
	"context"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// NewController returns a controller that is none of Kubernetes'.
func NewController(name string, build func(ctx context.Context) (func(context.Context), error)) Controller {
	return Controller{Name: name, build: func(ctx context.Context, _ *environment) (func(context.Context), error) { return build(ctx) }}
}

// TenantsKV returns what the tenants' etcd stores.
func TenantsKV(h *Host) mvcc.WatchableKV { return h.stores.tenants.server.Server.KV() }
