// Package session holds what is known of one tenant while it is engaged, and of the super cluster, for all that syncs its objects.
package session

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Session is one tenant while it is engaged: its cluster, what is known of both sides, and what is pending.
type Session struct {
	*SuperCluster
	Ctx     context.Context // ends with the tenant's engagement
	Cluster TenantCluster
	Client  client.Client
	Cache   *caches.Reader // of the tenant's objects
	tenant  atomic.Pointer[translate.Tenant]
	kinds   atomic.Pointer[map[string]*kinds.Kind] // that are carried, by name; the map is never changed
	Begun   atomic.Bool                            // both sides are known
	Guard   *guard.Guard

	// What was written to either side and is not in its cache yet.
	TenantRecent, SuperRecent *caches.Recent
	// Pending are the objects that are not synced for now.
	Pending *pending.Objects
	// Locks keep two workers from one object: one has it from the queue, another makes it inline, as a reference.
	Locks caches.KeyLocks
}

// New returns the session of a tenant that is engaged until ctx ends. It calls
// rejected for every write that the guard rejects.
func New(ctx context.Context, super *SuperCluster, c TenantCluster, objects *pending.Objects, rejected func()) *Session {
	t := c.Tenant()
	s := &Session{
		SuperCluster: super,
		Ctx:          ctx,
		Cluster:      c,
		Client:       c.GetClient(),
		Cache:        caches.NewReader(c.GetCache()),
		TenantRecent: caches.NewRecent(),
		SuperRecent:  caches.NewRecent(),
		Pending:      objects,
	}
	s.tenant.Store(&t)
	carried := map[string]*kinds.Kind{}
	for name, k := range super.Builtin {
		if c.Serves(k.GVK) {
			carried[name] = k
		}
	}
	s.kinds.Store(&carried)
	s.Guard = &guard.Guard{
		UID:        t.UID,
		Client:     super.API.GetClient(),
		Namespace:  s.SuperNamespace,
		Namespaced: super.API.GetClient().IsObjectNamespaced,
		Rejected:   rejected,
	}
	return s
}

// SetIdentity stores the tenant's identity. The pointer changes only with something that copies depend on, which the weight is
// not.
func (s *Session) SetIdentity(t translate.Tenant) {
	was := s.tenant.Load()
	if was != nil {
		same := *was
		same.Weight = t.Weight
		if reflect.DeepEqual(same, t) {
			return
		}
	}
	s.tenant.Store(&t)
}

// Identity is who the tenant is, as of now.
func (s *Session) Identity() translate.Tenant { return *s.tenant.Load() }

// IdentityVersion is a pointer to the identity, which is another one after each change.
func (s *Session) IdentityVersion() *translate.Tenant { return s.tenant.Load() }

// Kind is the carried kind of that name, or nil.
func (s *Session) Kind(name string) *kinds.Kind { return (*s.kinds.Load())[name] }

// KindOf is the carried kind of a group and kind, or nil.
func (s *Session) KindOf(gk schema.GroupKind) *kinds.Kind {
	for _, name := range []string{gk.Kind, gk.String()} {
		if k := s.Kind(name); k != nil && k.GVK.GroupKind() == gk {
			return k
		}
	}
	return nil
}

// Carried are the kinds that are carried.
func (s *Session) Carried() iter.Seq[*kinds.Kind] { return maps.Values(*s.kinds.Load()) }

// Carry adds a kind to those that are carried, or takes the place of the one of its name.
func (s *Session) Carry(k *kinds.Kind) {
	for {
		was, now := s.kinds.Load(), map[string]*kinds.Kind{}
		if was != nil {
			maps.Copy(now, *was)
		}
		now[k.Name] = k
		if s.kinds.CompareAndSwap(was, &now) {
			return
		}
	}
}

// Lane is the tenant's lane of the queue.
func (s *Session) Lane() string { return s.Identity().Key }

// Request is the request for an object of the tenant.
func (s *Session) Request(k *kinds.Kind, key client.ObjectKey) queue.Request {
	return queue.Request{Cluster: multicluster.ClusterName(s.Lane()), Kind: k.Name, Key: key}
}

// Asleep says whether the tenant's objects of a kind are not watched. It has then none that came from the super cluster.
func (s *Session) Asleep(k *kinds.Kind) bool {
	return k.Up != nil && k.Up.Class && !s.Cache.Opened(k)
}
