package session

import (
	"context"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// Requests are those for the objects of a tenant.
type Requests struct {
	*SuperCluster
	tenant     *Tenant
	kinds      *Kinds
	objects    *TenantObjects
	references *References
}

// NewRequests returns the requests for a tenant's objects.
func NewRequests(
	super *SuperCluster, tenant *Tenant, synced *Kinds, objects *TenantObjects, references *References,
) *Requests {
	return &Requests{SuperCluster: super, tenant: tenant, kinds: synced, objects: objects, references: references}
}

// Request is the request for an object of the tenant.
func (s *Requests) Request(k *kinds.Kind, key client.ObjectKey) queue.Request {
	return queue.Request{Cluster: multicluster.ClusterName(s.tenant.Lane()), Kind: k.Name, Key: key}
}

// Wake enqueues the objects that may wait for a new object. Events of different
// kinds arrive in any order.
func (s *Requests) Wake(ctx context.Context, k *kinds.Kind, obj client.Object) {
	again := func(k *kinds.Kind, key client.ObjectKey) { s.Enqueue(s.Request(k, key), queue.PriorityNormal) }
	if k.Name == NamespaceKind {
		s.eachIn(ctx, obj.GetName(), again)
		return
	}
	if k.Down == nil || k.Down.Mirror != nil || obj.GetNamespace() == "" {
		return
	}
	// Reading a cache that has synced does not fail. If it did, the objects
	// would be retried at their next event.
	_ = s.references.eachReferrer(ctx, k.Name, client.ObjectKeyFromObject(obj), again)
}

// eachIn calls f with each object that the tenant has in a namespace, of the
// kinds that are synced down.
func (s *Requests) eachIn(ctx context.Context, namespace string, f func(*kinds.Kind, client.ObjectKey)) {
	for k := range s.kinds.SyncedKinds() {
		if k.Down == nil || k.Name == NamespaceKind {
			continue
		}
		_ = s.objects.Cache.EachKeyBy(ctx, k, toolscache.NamespaceIndex, namespace, func(key client.ObjectKey) { f(k, key) })
	}
}

// Review enqueues the objects that an object of a namespace began or ceased to
// refer to: they may need a copy now, or no longer.
func (s *Requests) Review(namespace string, refs []kinds.Reference) {
	for _, ref := range refs {
		if to := s.kinds.Kind(ref.Kind); to != nil && to.Down != nil && to.Down.OnDemand {
			s.Enqueue(s.Request(to, ref.KeyFor(namespace)), queue.PriorityLow)
		}
	}
}

// Differing are the references that are in one of two lists alone.
func Differing(was, now []kinds.Reference) []kinds.Reference {
	var alone []kinds.Reference
	for _, ref := range was {
		if !slices.Contains(now, ref) {
			alone = append(alone, ref)
		}
	}
	for _, ref := range now {
		if !slices.Contains(was, ref) {
			alone = append(alone, ref)
		}
	}
	return alone
}
