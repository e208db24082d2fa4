package engine

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

// session is one tenant while it is engaged: its cluster, what is known of both sides, and what is pending.
type session struct {
	*superCluster
	ctx     context.Context // ends with the tenant's engagement
	cluster TenantCluster
	client  client.Client
	cache   *caches.Reader // of the tenant's objects
	tenant  atomic.Pointer[translate.Tenant]
	kinds   atomic.Pointer[map[string]*kinds.Kind] // that are carried, by name; the map is never changed
	begun   atomic.Bool                            // both sides are known
	guard   *guard.Guard

	// What was written to either side and is not in its cache yet.
	tenantRecent, superRecent *caches.Recent
	// refusals are the objects that the super cluster does not take, held those that validators do not allow.
	refusals *pending.Rejections
	held     *pending.Denials
	// locks keep two workers from one object: one has it from the queue, another makes it inline, as a reference.
	locks caches.KeyLocks
}

// pendingCounts are called with the objects of a kind that become rejected or denied, or are no more.
type pendingCounts struct {
	rejected, denied func(kind string, by int)
}

// newSession makes the session of a tenant that is engaged until ctx ends. It calls rejected for every write that the guard rejects.
func newSession(ctx context.Context, super *superCluster, c TenantCluster, counts pendingCounts, rejected func()) *session {
	t := c.Tenant()
	s := &session{
		superCluster: super,
		ctx:          ctx,
		cluster:      c,
		client:       c.GetClient(),
		cache:        caches.NewReader(c.GetCache()),
		tenantRecent: caches.NewRecent(),
		superRecent:  caches.NewRecent(),
		refusals:     pending.NewRejections(counts.rejected),
		held:         pending.NewDenials(counts.denied),
	}
	s.tenant.Store(&t)
	carried := map[string]*kinds.Kind{}
	for name, k := range super.builtin {
		if c.Serves(k.GVK) {
			carried[name] = k
		}
	}
	s.kinds.Store(&carried)
	s.guard = &guard.Guard{
		UID:        t.UID,
		Client:     super.super.GetClient(),
		Namespace:  s.superNamespace,
		Namespaced: super.super.GetClient().IsObjectNamespaced,
		Rejected:   rejected,
	}
	return s
}

// setIdentity stores the tenant's identity. The pointer changes only with something that copies depend on, which the weight is
// not.
func (s *session) setIdentity(t translate.Tenant) {
	was := *s.tenant.Load()
	was.Weight = t.Weight
	if !reflect.DeepEqual(was, t) {
		s.tenant.Store(&t)
	}
}

// identity is who the tenant is, as of now.
func (s *session) identity() translate.Tenant { return *s.tenant.Load() }

// kind is the carried kind of that name, or nil.
func (s *session) kind(name string) *kinds.Kind { return (*s.kinds.Load())[name] }

// kindOf is the carried kind of a group and kind, or nil.
func (s *session) kindOf(gk schema.GroupKind) *kinds.Kind {
	for _, name := range []string{gk.Kind, gk.String()} {
		if k := s.kind(name); k != nil && k.GVK.GroupKind() == gk {
			return k
		}
	}
	return nil
}

// carried are the kinds that are carried.
func (s *session) carried() iter.Seq[*kinds.Kind] { return maps.Values(*s.kinds.Load()) }

// carry adds a kind to those that are carried, or takes the place of the one of its name.
func (s *session) carry(k *kinds.Kind) {
	for {
		was := s.kinds.Load()
		now := maps.Clone(*was)
		now[k.Name] = k
		if s.kinds.CompareAndSwap(was, &now) {
			return
		}
	}
}

// lane is the tenant's lane of the queue.
func (s *session) lane() string { return s.identity().Key }

// request is the request for an object of the tenant.
func (s *session) request(k *kinds.Kind, key client.ObjectKey) queue.Request {
	return queue.Request{Cluster: multicluster.ClusterName(s.lane()), Kind: k.Name, Key: key}
}

// asleep says whether the tenant's objects of a kind are not watched. It has then none that came from the super cluster.
func (s *session) asleep(k *kinds.Kind) bool {
	return k.Up != nil && k.Up.Class && !s.cache.Opened(k)
}
