package engine

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/deletion"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pace"
	"github.com/virtualcluster/virtualcluster/syncer/patch"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// namespaceKind is the kind that all other objects live in.
const namespaceKind = "Namespace"

// session is one tenant while it is engaged: its cluster, and what is known of it beside the caches.
type session struct {
	*Engine
	ctx     context.Context // ends with the tenant's engagement
	cluster TenantCluster
	client  client.Client
	cache   *caches.Reader // of the tenant's objects
	tenant  atomic.Pointer[translate.Tenant]
	kinds   atomic.Pointer[map[string]*kinds.Kind] // that are carried, by name; the map is never changed
	patches *patch.Set
	begun   atomic.Bool // both sides are known
	// settling keeps two settles from undoing each other.
	settling sync.Mutex
	// awakening keeps a kind from being watched twice.
	awakening sync.Mutex
	guard     *guard.Guard

	// What was written to either side and is not in its cache yet.
	tenantRecent, superRecent *caches.Recent
	// refusals are the objects that the super cluster does not take, held those that validators do not allow.
	refusals *pending.Rejections
	held     *pending.Denials
	// turn is whose copy validators are asked about.
	turn *queue.Turn
	// retries is how often what is held was tried again because something had changed.
	retries atomic.Int64
	// deleted are the tenant's objects whose deletion was seen.
	deleted *deletion.Deletions
	// forced are those of them that had no time to end.
	forced *deletion.Deletions
	// identities are questions about whether the tenant is still the one that was engaged, absences about whether what is
	// missing was deleted.
	identities, absences *deletion.Verifier
	// emptySince is when the tenant was first seen without pods, those of the absences' answers that are in doubt.
	emptySince time.Time
	// agreements are the objects whose contents were compared and are in no cache.
	agreements agreements
	// locks keep two workers from one object: one has it from the queue, another makes it inline, as a reference.
	locks caches.KeyLocks
	// beat is the patrol's.
	beat beat
	// digests are of copies.
	digests digests
	// pace tells whether the tenant's apiserver answers slowly.
	pace *pace.Pace
}

func newSession(ctx context.Context, e *Engine, c TenantCluster) *session {
	t := c.Tenant()
	s := &session{
		Engine:       e,
		ctx:          ctx,
		cluster:      c,
		client:       c.GetClient(),
		cache:        caches.NewReader(c.GetCache()),
		tenantRecent: caches.NewRecent(),
		superRecent:  caches.NewRecent(),
		refusals:     pending.NewRejections(e.metrics.countRefused),
		held:         pending.NewDenials(e.metrics.countHeld),
		turn:         queue.NewTurn(func(r queue.Request) { e.enqueue(r, queue.PriorityHigh) }),
		identities:   deletion.NewVerifier(),
		absences:     deletion.NewVerifier(),
		patches:      patch.Compile(t.Sync.Patches),
		deleted:      &deletion.Deletions{},
		forced:       &deletion.Deletions{},
	}
	s.tenant.Store(&t)
	s.pace = pace.New(&e.usual, func(slow bool) { e.setSlow(s, slow) })
	carried := map[string]*kinds.Kind{}
	for name, k := range e.builtin {
		if c.Serves(k.GVK) {
			carried[name] = k
		}
	}
	s.kinds.Store(&carried)
	s.guard = &guard.Guard{
		UID:        t.UID,
		Client:     e.super.GetClient(),
		Namespace:  s.superNamespace,
		Namespaced: e.super.GetClient().IsObjectNamespaced,
		Rejected:   e.metrics.refusedWrites.Inc,
	}
	if e.validation != nil {
		s.guard.Validate = s.validate
	}
	return s
}

// settle takes over what is known of the tenant now. Nothing of it is handed out before both sides are known, or while its
// apiserver does not answer.
func (s *session) settle() {
	s.settling.Lock()
	defer s.settling.Unlock()
	t := s.cluster.Tenant()
	s.setIdentity(t)
	s.queue.SetWeight(t.Key, t.Weight)
	if s.begun.Load() && s.cluster.Healthy() {
		s.queue.Resume(t.Key)
	} else {
		s.queue.Pause(t.Key)
	}
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

// tenantObject is the tenant's object as far as is known; nil if there is none.
func (s *session) tenantObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	if s.asleep(k) {
		return nil, nil
	}
	cached, err := s.cache.Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.tenantRecent.Latest(k.Name, key, cached), nil
}

// superObject is the super cluster's object as far as is known; nil if there is none.
func (s *session) superObject(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	cached, err := s.cacheOf(k).Get(ctx, k, key)
	if err != nil {
		return nil, err
	}
	return s.superRecent.Latest(k.Name, key, cached), nil
}

// superNamespace is what is known of a namespace of the super cluster; nil if it does not exist.
func (s *session) superNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	obj, err := s.superObject(ctx, s.builtin[namespaceKind], client.ObjectKey{Name: name})
	if err != nil || obj == nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

// ensure makes sure that the copy of an object exists and is current, and reports whether it exists. One that is being deleted does not
// count. An object of the super cluster that is not the tenant's is an error.
func (s *session) ensure(ctx context.Context, name string, key client.ObjectKey) (bool, error) {
	k := s.kind(name)
	if k == nil {
		return false, nil
	}
	superKey := k.Down.SuperKey(s.identity(), key)
	if super, err := s.superObject(ctx, k, superKey); err != nil || super != nil && s.isOurs(super) && s.isCurrent(k, super) {
		return stand(super) == present, err
	}
	if err := s.syncDown(ctx, k, key); err != nil {
		return false, err
	}
	super, err := s.superObject(ctx, k, superKey)
	if err == nil && super != nil && !s.isOurs(super) {
		err = guard.ErrForeign
	}
	return err == nil && stand(super) == present, err
}

// isCurrent reports whether a copy has what others rely on. One that is being deleted is left as it is.
func (s *session) isCurrent(k *kinds.Kind, super client.Object) bool {
	return stand(super) != present || k.Down.Current(s.identity(), super)
}

// referred says whether an object of the tenant refers to this one.
func (s *session) referred(ctx context.Context, kind string, key client.ObjectKey) (bool, error) {
	for k := range s.referrers() {
		if found, err := s.cache.Has(ctx, k, caches.IndexReferences, caches.ReferenceValue(key.Namespace, kind, key.Name)); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// eachReferrer calls f with the request of each of the tenant's objects that refers to this one, if its kind goes down.
func (s *session) eachReferrer(ctx context.Context, name string, key client.ObjectKey, f func(queue.Request)) error {
	for k := range s.referrers() {
		to := caches.ReferenceValue(key.Namespace, name, key.Name)
		err := s.cache.EachKeyBy(ctx, k, caches.IndexReferences, to, func(key client.ObjectKey) {
			f(s.request(k, key))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// referrers are the kinds that go down and whose objects refer to others.
func (s *session) referrers() iter.Seq[*kinds.Kind] {
	return func(yield func(*kinds.Kind) bool) {
		for k := range s.carried() {
			if k.Down == nil || k.Down.References == nil || s.identity().Mode(k.Name) == tenancyv1alpha1.SyncOff {
				continue
			}
			if !yield(k) {
				return
			}
		}
	}
}

// usesNode says whether the tenant has an object on a node.
func (s *session) usesNode(ctx context.Context, node string) (bool, error) {
	for k := range s.carried() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		if used, err := s.cacheOf(k).Has(ctx, k, caches.IndexNode, caches.NodeValue(s.lane(), node)); used || err != nil {
			return used, err
		}
	}
	return false, nil
}
