package session

import (
	"context"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// NamespaceKind is the kind that all other objects live in.
const NamespaceKind = "Namespace"

// NodeKind is the kind of the nodes that mirrored objects sit on.
const NodeKind = "Node"

// TenantCluster is the cluster of a tenant as a provider engages it.
type TenantCluster interface {
	cluster.Cluster
	// Tenant is who it is, as the VirtualCluster says now. After a change, the cluster is engaged again.
	Tenant() translate.Tenant
	// Healthy says whether the tenant's apiserver answers. After a change, the cluster is engaged again.
	Healthy() bool
	// Verify makes sure that the apiserver still serves the cluster that was engaged, by asking it.
	Verify(ctx context.Context) error
	// Emptied is told that the tenant has no pod left though nobody deleted them, while so many run in the super cluster. An
	// error says that an admin has to confirm that they are to be removed.
	Emptied(pods int) error
	// Serves says whether the tenant's apiserver has a kind in this version.
	Serves(gvk schema.GroupVersionKind) bool
	// Learn has the clients of the cluster know a kind that is not built in.
	Learn(mapping *meta.RESTMapping)
	// Problem is told what keeps something of the tenant's from being carried, for its admin; nothing if it is carried again.
	Problem(about, message string)
	// Hold says that something is done for the tenant until release is called. It is not ok when the tenant is being let go of.
	Hold() (release func(), ok bool)
	// Synced is called once, when the caches are full and the tenant's objects are being carried.
	Synced()
}

// tokenKinds are the kind that has tokens, nil if there is none, and the Secrets that they are kept in. Of these the metadata is
// watched and no token: nobody needs those but the kubelets.
type tokenKinds struct {
	Of, Secrets *kinds.Kind
}

// SuperCluster is the super cluster as all sessions share it.
type SuperCluster struct {
	API        cluster.Cluster
	Caches     map[kinds.Source]*caches.Reader // of the super cluster's objects
	Builtin    map[string]*kinds.Kind
	TokenKinds tokenKinds
	Queue      *fairqueue.Queue[queue.Request]
}

// CacheOf returns the cache that holds the super cluster's objects of a kind.
func (e *SuperCluster) CacheOf(k *kinds.Kind) *caches.Reader { return e.Caches[k.Source] }

// Enqueue adds a request to the queue.
func (e *SuperCluster) Enqueue(r queue.Request, priority int) {
	e.Queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, r)
}

// EnqueueLater adds a request to the queue after some time, at low priority.
func (e *SuperCluster) EnqueueLater(r queue.Request, after time.Duration) {
	e.Queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(queue.PriorityLow), After: after}, r)
}

// WithOwn are the kinds of which the syncer has objects of its own, whether the tenant's apiserver serves them or not.
func (e *SuperCluster) WithOwn() iter.Seq2[*kinds.Kind, kinds.Own[client.Object]] {
	return func(yield func(*kinds.Kind, kinds.Own[client.Object]) bool) {
		for _, k := range e.Builtin {
			if k.Down == nil {
				continue
			}
			for _, o := range k.Down.Own {
				if !yield(k, o) {
					return
				}
			}
		}
	}
}
