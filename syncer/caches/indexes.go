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
	// IndexCluster finds the copies of a tenant's objects, by cluster key.
	IndexCluster = "tenant"
	// IndexNamespace finds what is shown to a tenant because of its namespace, by the super cluster's name of that.
	IndexNamespace = "shown-namespace"
	// IndexNode finds a tenant's mirrored objects on a node.
	IndexNode = "tenant-node"
	// IndexClaims finds the super cluster's objects that have a claim.
	IndexClaims = "claims"
	// IndexReferences finds the objects of a tenant that refer to another.
	IndexReferences = "references"
	// IndexAddresses finds a tenant's mirrored objects by the addresses that they have to themselves.
	IndexAddresses = "tenant-addresses"
	// IndexTargets finds the objects of a tenant that lead to an address.
	IndexTargets = "targets"
)

// ReferenceValue finds by indexReferences what refers to an object.
func ReferenceValue(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

// NodeValue finds by indexNode what a tenant has on a node.
func NodeValue(cluster, node string) string { return cluster + "/" + node }

// TenantIndexes are the indexes that a kind needs on the tenant's side.
func TenantIndexes(k *kinds.Kind) toolscache.Indexers {
	indexes := toolscache.Indexers{}
	if k.Down != nil && k.Down.References != nil {
		indexes[IndexReferences] = byReferences(k)
	}
	if k.Down != nil && k.Down.Targets != nil {
		indexes[IndexTargets] = valuesOf(func(obj client.Object) []string { return addressValues("", k.Down.Targets(obj)) })
	}
	return indexes
}

// byReferences is the function of an index by what an object refers to.
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

// addressValues are the values of an index by addresses.
func addressValues(cluster string, addresses []string) []string {
	values := make([]string, len(addresses))
	for i, address := range addresses {
		values[i] = AddressValue(cluster, address)
	}
	return values
}

// SuperIndexes are the indexes that a kind needs on the super cluster's side.
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

// ByTenant is the function of an index by the cluster key of whose an object is.
func ByTenant() toolscache.IndexFunc {
	return valuesOf(func(obj client.Object) []string { return []string{translate.OriginOf(obj).Cluster} })
}

// valuesOf is the function of an index by what is said of an object.
func valuesOf(by func(client.Object) []string) toolscache.IndexFunc {
	return func(held any) ([]string, error) {
		obj, err := asObject(held)
		if err != nil {
			return nil, err
		}
		return by(obj), nil
	}
}

// AddressValue is the value of an address in indexAddresses and indexTargets. Equal addresses have one spelling.
func AddressValue(cluster, address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		address = ip.Unmap().String()
	}
	return cluster + "/" + address
}
