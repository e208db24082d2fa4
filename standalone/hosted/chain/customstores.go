package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// newCustomStores returns what creates the storage of a tenant's custom
// resources. Tenants do not share it, nor do definitions that follow each
// other: codecs, schemas and storage versions differ.
func newCustomStores(c *Chain, t *Tenant) generic.RESTOptionsGetter {
	return customStores{chain: c, tenant: t.spec.Name}
}

type customStores struct {
	chain  *Chain
	tenant string
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (s customStores) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	decorate := func(store storage.Interface, resource schema.GroupResource) storage.Interface {
		return boundStorage{Interface: s.chain.opts.Decorate(store, resource), tenant: s.tenant}
	}
	// The map of these stores has one storage only.
	return newStores(s.chain.config.ApiExtensions.ExtraConfig.CRDRESTOptionsGetter, s.chain.opts.Store, s.chain.listed, decorate).
		GetRESTOptions(resource, example)
}

// boundStorage sets the tenant of each call. The context of the controller that
// deletes the resources of a definition has none. A context of another tenant
// is an error.
type boundStorage struct {
	storage.Interface

	tenant string
}

// Create implements storage.Interface.
func (s boundStorage) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	return s.Interface.Create(keyspace.NewContext(ctx, s.tenant), key, object, out, ttl)
}

// Delete implements storage.Interface.
func (s boundStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	return s.Interface.Delete(keyspace.NewContext(ctx, s.tenant), key, out, preconditions, validate, cached, opts)
}

// Watch implements storage.Interface.
func (s boundStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	return s.Interface.Watch(keyspace.NewContext(ctx, s.tenant), key, opts)
}

// Get implements storage.Interface.
func (s boundStorage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return s.Interface.Get(keyspace.NewContext(ctx, s.tenant), key, opts, out)
}

// GetList implements storage.Interface.
func (s boundStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return s.Interface.GetList(keyspace.NewContext(ctx, s.tenant), key, opts, list)
}

// GuaranteedUpdate implements storage.Interface.
func (s boundStorage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	ctx = keyspace.NewContext(ctx, s.tenant)
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached)
}

// Stats implements storage.Interface.
func (s boundStorage) Stats(ctx context.Context) (storage.Stats, error) {
	return s.Interface.Stats(keyspace.NewContext(ctx, s.tenant))
}

// RequestWatchProgress implements storage.Interface.
func (s boundStorage) RequestWatchProgress(ctx context.Context) error {
	return s.Interface.RequestWatchProgress(keyspace.NewContext(ctx, s.tenant))
}

// GetCurrentResourceVersion implements storage.Interface.
func (s boundStorage) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	return s.Interface.GetCurrentResourceVersion(keyspace.NewContext(ctx, s.tenant))
}
