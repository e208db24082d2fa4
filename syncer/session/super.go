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
	TenantReporter
	// Tenant returns the tenant as its VirtualCluster describes it now. After a
	// change, the cluster is engaged again.
	Tenant() translate.Tenant
	// Hosted reports whether the platform runs the tenant's apiserver.
	Hosted() bool
	// Healthy reports whether the tenant's apiserver answers. After a change,
	// the cluster is engaged again.
	Healthy() bool
	// Verify asks the apiserver whether it still serves the cluster that was
	// engaged.
	Verify(ctx context.Context) error
	// Serves reports whether the tenant's apiserver has a kind in this version.
	Serves(gvk schema.GroupVersionKind) bool
	// Learn makes a kind that is not built in known to the clients of the
	// cluster.
	Learn(mapping *meta.RESTMapping)
	// Hold keeps the tenant with this syncer until release is called. It is not
	// ok when the tenant is being disengaged.
	Hold() (release func(), ok bool)
}

// TenantReporter reports on a tenant to its admin, on the VirtualCluster.
type TenantReporter interface {
	// Synced is called once, when the caches are full and the tenant's objects
	// are being synced.
	Synced()
	// Pending takes a summary of the tenant's pending objects in one line;
	// empty if there are none.
	Pending(summary string)
	// Problem takes what keeps a kind of the tenant's from being synced; empty
	// if it is synced again.
	Problem(about, message string)
	// Emptied takes the number of pods that run in the super cluster, of a
	// tenant that has none left although no deletion was observed. It returns
	// an error until an admin has confirmed that they are to be deleted.
	Emptied(pods int) error
}

// tokenKinds are the kind that has tokens, nil if there is none, and the
// Secrets that they are kept in. Of these the metadata is watched and no token:
// only kubelets need those.
type tokenKinds struct {
	Of, Secrets *kinds.Kind
}

// SuperCluster is the super cluster as all sessions share it.
type SuperCluster struct {
	API        cluster.Cluster
	Caches     map[kinds.Source]*caches.Reader // of the super cluster's objects
	Builtin    map[string]*kinds.Kind
	TokenKinds tokenKinds
	Standing   StandingKinds
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

// WithOwn are the kinds of which the syncer has objects of its own, whether the
// tenant's apiserver serves them or not.
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
