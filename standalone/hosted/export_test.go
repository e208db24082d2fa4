package hosted

import (
	"context"

	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
)

// DecodedTypes returns the types as which apiservers decode bodies.
func DecodedTypes() *nesting.Types { return decodedTypes() }

// KeyringIn returns a keyring in a directory.
func KeyringIn(dir string) Keyring { return directories{dir} }

// NewController returns a controller that is none of Kubernetes'.
func NewController(name string, build func(ctx context.Context) (func(context.Context), error)) Controller {
	return Controller{Name: name, Build: func(ctx context.Context, _ *controllers.Environment) (func(context.Context), error) {
		return build(ctx)
	}}
}

// TenantsKV returns what the tenants' etcd stores.
func TenantsKV(h *Host) mvcc.WatchableKV { return h.stores.tenants.server.Server.KV() }

// SharesChain reports whether the shared handler chain of a host exists.
func SharesChain(h *Host) bool {
	h.chains.mu.Lock()
	defer h.chains.mu.Unlock()
	return h.chains.shared != nil
}
