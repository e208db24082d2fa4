package engine

import (
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Indexes of the caches.
const (
	// indexCluster finds the copies of a tenant's objects, by cluster key.
	indexCluster = "tenant"
	// indexNamespace finds what is shown to a tenant because of its namespace, by the super cluster's name of that.
	indexNamespace = "shown-namespace"
	// indexNode finds a tenant's mirrored objects on a node.
	indexNode = "tenant-node"
	// indexClaims finds the super cluster's objects that have a claim.
	indexClaims = "claims"
	// indexReferences finds the objects of a tenant that refer to another.
	indexReferences = "references"
	// indexAddresses finds a tenant's mirrored objects by the addresses that they have to themselves.
	indexAddresses = "tenant-addresses"
	// indexTargets finds the objects of a tenant that lead to an address.
	indexTargets = "targets"
)

// request is the request for an object of the tenant.
func (s *session) request(k *kinds.Kind, key client.ObjectKey) Request {
	return Request{Cluster: multicluster.ClusterName(s.lane()), Kind: k.Name, Key: key}
}

func (e *Engine) enqueue(r Request, priority int) {
	e.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, r)
}

func (s *session) enqueueLater(r Request, after time.Duration) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priorityLow), After: after}, r)
}

// referenceValue finds by indexReferences what refers to an object.
func referenceValue(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

// nodeValue finds by indexNode what a tenant has on a node.
func nodeValue(cluster, node string) string { return cluster + "/" + node }

// tenantIndexes are the indexes that a kind needs on the tenant's side.
func tenantIndexes(k *kinds.Kind) toolscache.Indexers {
	indexes := toolscache.Indexers{}
	if k.Down != nil && k.Down.References != nil {
		indexes[indexReferences] = byReferences(k)
	}
	if k.Down != nil && k.Down.Targets != nil {
		indexes[indexTargets] = valuesOf(func(obj client.Object) []string { return addressValues("", k.Down.Targets(obj)) })
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
			values[i] = referenceValue(key.Namespace, ref.Kind, key.Name)
		}
		return values
	})
}

// addressValues are the values of an index by addresses.
func addressValues(cluster string, addresses []string) []string {
	values := make([]string, len(addresses))
	for i, address := range addresses {
		values[i] = addressValue(cluster, address)
	}
	return values
}

// superIndexes are the indexes that a kind needs on the super cluster's side.
func superIndexes(k *kinds.Kind) toolscache.Indexers {
	switch {
	case k.Down == nil && (k.Up.Node || k.Up.Class):
		return nil
	case k.Down == nil:
		return toolscache.Indexers{indexNamespace: valuesOf(func(obj client.Object) []string { return []string{k.Up.Namespace(obj)} })}
	}
	indexes := toolscache.Indexers{indexCluster: byTenant()}
	if k.Down.Claims != nil {
		indexes[indexClaims] = valuesOf(k.Down.Claims)
	}
	if k.Down.Mirror != nil {
		indexes[indexNode] = valuesOf(func(obj client.Object) []string {
			if node := k.Down.Mirror.Node(obj); node != "" {
				return []string{nodeValue(translate.OriginOf(obj).Cluster, node)}
			}
			return nil
		})
		indexes[indexAddresses] = valuesOf(func(obj client.Object) []string {
			return addressValues(translate.OriginOf(obj).Cluster, k.Down.Mirror.Addresses(obj))
		})
	}
	return indexes
}

// byTenant is the function of an index by the cluster key of whose an object is.
func byTenant() toolscache.IndexFunc {
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

// handler is an event handler of functions, each of which may be nil.
type handler struct {
	add    func(obj client.Object, initial bool)
	update func(was, now client.Object)
	remove func(obj client.Object, missed bool)
}

var _ toolscache.ResourceEventHandler = handler{}

// OnAdd is called with a new object, or with one of the first list.
func (h handler) OnAdd(obj any, initial bool) {
	if o, ok := obj.(client.Object); ok && h.add != nil {
		h.add(o, initial)
	}
}

// OnUpdate is called with an object before and after a change.
func (h handler) OnUpdate(was, now any) {
	o, okWas := was.(client.Object)
	n, okNow := now.(client.Object)
	if okWas && okNow && h.update != nil {
		h.update(o, n)
	}
}

// OnDelete is called with an object that is gone, as it was last seen. Its deletion was missed if it is only found missing.
func (h handler) OnDelete(obj any) {
	gone, missed := obj.(toolscache.DeletedFinalStateUnknown)
	if missed {
		obj = gone.Obj
	}
	if o, ok := obj.(client.Object); ok && h.remove != nil {
		h.remove(o, missed)
	}
}
