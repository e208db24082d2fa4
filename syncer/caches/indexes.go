package caches

import (
	"net/netip"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Indexes of the caches.
const (
	// IndexCluster indexes copies by the cluster key of their tenant.
	IndexCluster = "tenant"
	// IndexNamespace indexes objects that are synced up because of their
	// namespace, by its name in the super cluster.
	IndexNamespace = "shown-namespace"
	// IndexNode indexes a tenant's mirrored objects by node.
	IndexNode = "tenant-node"
	// IndexClaims indexes the super cluster's objects by their claims.
	IndexClaims = "claims"
	// IndexReferences indexes a tenant's objects by the objects that they refer
	// to.
	IndexReferences = "references"
	// IndexAddresses indexes a tenant's mirrored objects by the addresses that
	// only they have.
	IndexAddresses = "tenant-addresses"
	// IndexTargets indexes a tenant's objects by the addresses that they direct
	// traffic to.
	IndexTargets = "targets"
	// IndexNetwork indexes a tenant's objects by the network that they name.
	IndexNetwork = "network"
)

// ReferenceValue returns the value of IndexReferences for an object.
func ReferenceValue(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

// NodeValue returns the value of IndexNode for a tenant and a node.
func NodeValue(cluster, node string) string { return cluster + "/" + node }

// TenantIndexes returns the indexes of a kind for tenants.
func TenantIndexes(k *kinds.Kind) toolscache.Indexers {
	indexes := toolscache.Indexers{}
	if k.Down != nil && k.Down.References != nil {
		indexes[IndexReferences] = byReferences(k)
	}
	if k.Down != nil && k.Down.Targets != nil {
		indexes[IndexTargets] = valuesOf(func(obj client.Object) []string { return addressValues("", k.Down.Targets(obj)) })
	}
	if k.Down != nil && k.Down.Network != nil {
		indexes[IndexNetwork] = valuesOf(func(obj client.Object) []string { return []string{k.Down.Network(obj)} })
	}
	return indexes
}

// byReferences indexes objects by their references.
func byReferences(k *kinds.Kind) toolscache.IndexFunc {
	return valuesOf(func(obj client.Object) []string {
		refs := k.Down.References(obj)
		values := make([]string, len(refs))
		for i, ref := range refs {
			key := ref.KeyFor(obj.GetNamespace())
			values[i] = ReferenceValue(key.Namespace, ref.Kind, key.Name)
		}
		return values
	})
}

// addressValues returns the values of addresses.
func addressValues(cluster string, addresses []string) []string {
	values := make([]string, len(addresses))
	for i, address := range addresses {
		values[i] = AddressValue(cluster, address)
	}
	return values
}

// SuperIndexes returns the indexes of a kind for the super cluster.
func SuperIndexes(k *kinds.Kind) toolscache.Indexers {
	switch {
	case k.Down == nil && (k.Up.Node || k.Up.Class):
		return nil
	case k.Down == nil:
		return toolscache.Indexers{IndexNamespace: valuesOf(func(obj client.Object) []string { return []string{k.Up.Namespace(obj)} })}
	}
	indexes := toolscache.Indexers{IndexCluster: ByTenant()}
	if k.Down.Claims != nil {
		indexes[IndexClaims] = valuesOf(k.Down.Claims)
	}
	if k.Down.Mirror != nil {
		indexes[IndexNode] = valuesOf(func(obj client.Object) []string {
			if node := k.Down.Mirror.Node(obj); node != "" {
				return []string{NodeValue(translate.OriginOf(obj).Cluster, node)}
			}
			return nil
		})
		indexes[IndexAddresses] = valuesOf(func(obj client.Object) []string {
			return addressValues(translate.OriginOf(obj).Cluster, k.Down.Mirror.Addresses(obj))
		})
	}
	return indexes
}

// ByTenant indexes objects by the cluster key of their tenant.
func ByTenant() toolscache.IndexFunc {
	return valuesOf(func(obj client.Object) []string { return []string{translate.OriginOf(obj).Cluster} })
}

// valuesOf indexes objects by the values that a function returns.
func valuesOf(by func(client.Object) []string) toolscache.IndexFunc {
	return func(held any) ([]string, error) {
		obj, err := asObject(held)
		if err != nil {
			return nil, err
		}
		return by(obj), nil
	}
}

// AddressValue returns the value of IndexAddresses and IndexTargets for an
// address. Equal addresses have the same value, however they are spelled.
func AddressValue(cluster, address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		address = ip.Unmap().String()
	}
	return cluster + "/" + address
}
