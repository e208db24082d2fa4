package decoded

import (
	"context"
	"hash/maphash"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/etcd3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// decoder decodes the objects of one resource.
type decoder struct {
	etcd3.Decoder

	cache *Cache
}

// Decoder returns a decoder of one resource, which decodes with another one
// what lists have not decoded before. Lists get objects that other lists get,
// as upstream's lists from a watch cache do: their callers do not change them.
// Each other call gets an object of its own.
func (c *Cache) Decoder(inner etcd3.Decoder) etcd3.Decoder { return &decoder{Decoder: inner, cache: c} }

// DecodeListItem implements etcd3.Decoder.
func (d *decoder) DecodeListItem(
	ctx context.Context, data []byte, revision uint64, newItem func() runtime.Object,
) (runtime.Object, error) {
	tenant, err := keyspace.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	k := key{resource: d, revision: revision, hash: maphash.Bytes(d.cache.seed, data)}
	if known := d.cache.get(tenant, k, data); known != nil {
		return known, nil
	}
	object, err := d.Decoder.DecodeListItem(ctx, data, revision, newItem)
	if err == nil {
		d.cache.add(tenant, k, data, object)
	}
	return object, err
}
