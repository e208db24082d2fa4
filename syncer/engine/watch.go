package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// watchBuiltin watches the super cluster's objects of all kinds that are built in, and waits until they are known.
func (e *Engine) watchBuiltin(ctx context.Context) error {
	var known []toolscache.DoneChecker
	for _, k := range e.builtin {
		synced, err := e.watchSuper(ctx, k)
		if err != nil {
			return err
		}
		known = append(known, synced)
	}
	if e.tokens.of != nil {
		synced, err := e.watchTokens(ctx)
		if err != nil {
			return err
		}
		known = append(known, synced)
	}
	if !toolscache.WaitFor(ctx, "", known...) {
		return ctx.Err()
	}
	return nil
}

// owner is the engaged tenant whose copy an object of the super cluster is, or nil.
func (e *Engine) owner(obj client.Object) *session {
	return e.session(multicluster.ClusterName(translate.OriginOf(obj).Cluster))
}

// watchSuper has the super cluster's events of a kind lead to requests. What is returned tells when all objects are known.
func (e *Engine) watchSuper(ctx context.Context, k *kinds.Kind) (toolscache.DoneChecker, error) {
	informer, err := e.cacheOf(k).Open(ctx, k, caches.SuperIndexes(k))
	if err != nil {
		return nil, fmt.Errorf("watching the super cluster's %s objects: %w", k.Name, err)
	}
	registration, err := informer.AddEventHandler(e.superHandler(k))
	if err != nil {
		return nil, fmt.Errorf("watching the super cluster's %s objects: %w", k.Name, err)
	}
	return registration.HasSyncedChecker(), nil
}

// superHandler handles the super cluster's events of one kind.
func (e *Engine) superHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	switch {
	case k.Down != nil:
		return e.copyHandler(k)
	case k.Up.Node:
		return e.nodeHandler(k)
	case k.Up.Class:
		return e.classHandler(k)
	}
	show := func(obj client.Object) {
		for s, key := range e.viewers(k, obj) {
			s.superRecent.Seen(k.Name, obj)
			s.enqueue(s.request(k, key), queue.PriorityLow)
		}
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { show(obj) },
		Update: func(_, obj client.Object) { show(obj) },
		Remove: func(obj client.Object, _ bool) { show(obj) },
	}
}

// classHandler handles events of what every tenant may be offered. What was refused may have waited for it.
func (e *Engine) classHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object) {
		e.eachSession(func(s *session) {
			s.enqueue(s.request(k, client.ObjectKeyFromObject(obj)), queue.PriorityNormal)
			s.enqueueParked(s.refusals.All(), queue.PriorityLow)
		})
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { event(obj) },
		Update: func(_, obj client.Object) { event(obj) },
		Remove: func(obj client.Object, _ bool) { event(obj) },
	}
}

// copyHandler handles events of copies of tenants' objects. Those of tenants that are not engaged are looked at when they are.
func (e *Engine) copyHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object, priority int) *session {
		if e.reviewOwn(k, obj, func(s *session) { s.superRecent.Seen(k.Name, obj) }) {
			return nil
		}
		s := e.owner(obj)
		if s != nil {
			s.superRecent.Seen(k.Name, obj)
			s.enqueue(s.request(k, k.Down.TenantKey(obj)), priority)
			s.affect(k, obj)
		}
		return s
	}
	return caches.Handler{
		Add: func(obj client.Object, _ bool) {
			e.usage.Observe(k, nil, obj)
			if s := event(obj, queue.PriorityNormal); s != nil {
				s.retarget(k, nil, obj)
			}
		},
		Update: func(was, obj client.Object) {
			e.usage.Observe(k, was, obj)
			if graceExpired(k.Down.Mirror, was, obj) {
				return
			}
			s := event(obj, queue.PriorityHigh)
			if s == nil {
				s = event(was, queue.PriorityHigh) // the labels that name its tenant were removed
			}
			if s != nil {
				s.retarget(k, was, obj)
			}
		},
		Remove: func(obj client.Object, _ bool) {
			e.usage.Observe(k, obj, nil)
			if e.reviewOwn(k, obj, func(s *session) { s.superRecent.Ended(k.Name, obj) }) {
				return
			}
			s := e.owner(obj)
			if s == nil {
				return
			}
			s.superRecent.Ended(k.Name, obj)
			event(obj, queue.PriorityHigh)
			s.retarget(k, obj, nil)
			s.freed(k)
			if m := k.Down.Mirror; m != nil && m.Node(obj) != "" {
				s.enqueueLater(s.request(s.builtin[nodeKind], client.ObjectKey{Name: m.Node(obj)}), s.nodeLinger)
			}
		},
	}
}

// nodeHandler handles events of nodes, of which every tenant may have objects, and ignores heartbeats.
func (e *Engine) nodeHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object) {
		if !e.known() {
			return
		}
		key := client.ObjectKeyFromObject(obj)
		e.eachSession(func(s *session) {
			if used, err := s.usesNode(s.ctx, key.Name); used || err != nil {
				s.enqueue(s.request(k, key), queue.PriorityNormal)
			}
		})
	}
	return caches.Handler{
		Add: func(obj client.Object, _ bool) { event(obj) },
		Update: func(was, now client.Object) {
			if !wire.Equal(k.Up.Desired(kinds.View{}, was), k.Up.Desired(kinds.View{}, now)) {
				event(now)
			}
		},
		Remove: func(obj client.Object, _ bool) { event(obj) },
	}
}

// known says whether the super cluster's objects are known. Until then, a handler that reads the cache of another kind would wait for it,
// even when the syncer is stopped meanwhile; and no tenant has begun, which looks at everything when it does.
func (e *Engine) known() bool {
	select {
	case <-e.watching:
		return true
	default:
		return false
	}
}

// viewers are the tenants for whom an event of such an object counts, with the key of each: the one whose namespace it is in or
// belongs to and, if it is in none, those that hold it because it belonged to theirs before.
func (e *Engine) viewers(k *kinds.Kind, obj client.Object) map[*session]client.ObjectKey {
	viewers := map[*session]client.ObjectKey{}
	if !e.known() {
		return viewers
	}
	if s, key := e.viewer(k, obj); s != nil {
		viewers[s] = key
	}
	if obj.GetNamespace() != "" {
		return viewers
	}
	key := client.ObjectKeyFromObject(obj)
	e.eachSession(func(s *session) {
		// A cache that is not full yet would be waited for. What it turns out to hold is looked at then.
		if !s.begun.Load() || s.kind(k.Name) == nil {
			return
		}
		if held, err := s.tenantObject(s.ctx, k, key); held != nil || err != nil {
			viewers[s] = key
		}
	})
	return viewers
}

// viewer is the tenant that sees an object of the super cluster because of its namespace, and the tenant's key of it.
func (e *Engine) viewer(k *kinds.Kind, obj client.Object) (*session, client.ObjectKey) {
	namespace := k.Up.Namespace(obj)
	if namespace == "" {
		return nil, client.ObjectKey{}
	}
	spaces := e.builtin[namespaceKind]
	ns, err := e.cacheOf(spaces).Get(context.Background(), spaces, client.ObjectKey{Name: namespace})
	if err != nil || ns == nil {
		return nil, client.ObjectKey{}
	}
	origin := translate.OriginOf(ns)
	return e.session(multicluster.ClusterName(origin.Cluster)), tenantKeyIn(origin.Namespace, client.ObjectKeyFromObject(obj))
}

// tenantKeyIn is the tenant's key of an object of the super cluster that belongs to one of its namespaces.
func tenantKeyIn(namespace string, superKey client.ObjectKey) client.ObjectKey {
	if superKey.Namespace == "" {
		namespace = ""
	}
	return client.ObjectKey{Namespace: namespace, Name: superKey.Name}
}

// run watches the tenant, hands out its requests once both sides are known, and ends with the engagement.
func (s *session) run(name multicluster.ClusterName) {
	defer s.disengage(name, s)
	logger := log.Log.WithName("syncer").WithValues("tenant", name)
	if err := s.begin(); err != nil {
		if s.ctx.Err() == nil {
			logger.Error(err, "The tenant cannot be watched; it is engaged again when its VirtualCluster changes")
		}
		return
	}
	s.begun.Store(true)
	s.settle()
	s.cluster.Synced()
	logger.Info("Carrying the tenant's objects")
	var custom sync.WaitGroup
	for _, r := range s.identity().Sync.CustomResources {
		custom.Go(func() { s.carryCustom(r) })
	}
	custom.Wait()
	<-s.ctx.Done()
}

// begin opens the tenant's watches, waits until all is known, and enqueues what the super cluster has of the tenant, by which
// is found what the tenant deleted while nobody looked.
func (s *session) begin() error {
	if err := s.open(); err != nil {
		return err
	}
	// The super cluster's caches fill at the same time.
	select {
	case <-s.watching:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	if err := s.catchUp(); err != nil {
		return err
	}
	return s.enqueueSuper()
}

// open opens the tenant's watches, in its turn, and waits until its objects are known.
func (s *session) open() error {
	giveBack, err := s.beginning.take(s.ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	var known []toolscache.DoneChecker
	for k := range s.carried() {
		if k.Up != nil && k.Up.Class {
			continue
		}
		registration, err := s.watchTenant(k)
		if err != nil {
			return err
		}
		known = append(known, registration.HasSyncedChecker())
	}
	used, err := s.awakenUsed()
	if err != nil {
		return err
	}
	if !toolscache.WaitFor(s.ctx, "", append(known, used...)...) {
		return s.ctx.Err()
	}
	return nil
}

// watchTenant has the tenant's events of one kind lead to requests.
func (s *session) watchTenant(k *kinds.Kind) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := s.cache.Open(s.ctx, k, caches.TenantIndexes(k))
	if err != nil {
		return nil, fmt.Errorf("watching the tenant's %s objects: %w", k.Name, err)
	}
	registration, err := informer.AddEventHandler(s.tenantHandler(k))
	if err != nil {
		return nil, fmt.Errorf("watching the tenant's %s objects: %w", k.Name, err)
	}
	return registration, nil
}

// tenantHandler handles the tenant's events of one kind.
func (s *session) tenantHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	if k.Up != nil && k.Up.Expires {
		// What expires is not put back when it goes.
		return caches.Handler{}
	}
	return caches.Handler{
		Add: func(obj client.Object, initial bool) {
			s.tenantRecent.Seen(k.Name, obj)
			if initial {
				s.enqueue(s.request(k, client.ObjectKeyFromObject(obj)), initialPriority(k, obj))
				return
			}
			s.enqueue(s.request(k, client.ObjectKeyFromObject(obj)), queue.PriorityNormal)
			// Before, nothing has been tried that could wait, and caches that are not full yet would hold up this one's events.
			if s.begun.Load() {
				s.wake(k, obj)
			}
		},
		Update: func(was, obj client.Object) {
			if s.tenantRecent.Seen(k.Name, obj) && onlyStatus(was, obj) {
				return // it is the one that was shown
			}
			if k.Down != nil && graceExpired(k.Down.Mirror, was, obj) {
				return
			}
			s.enqueue(s.request(k, client.ObjectKeyFromObject(obj)), queue.PriorityNormal)
			// Without a new generation, it is the status that changed; not all kinds have generations.
			if obj.GetGeneration() == 0 || obj.GetGeneration() != was.GetGeneration() {
				s.review(obj.GetNamespace(), differing(kinds.References(k, was), kinds.References(k, obj)))
			}
		},
		Remove: func(obj client.Object, missed bool) {
			s.witness(obj, missed)
			s.tenantRecent.Ended(k.Name, obj)
			s.enqueue(s.request(k, client.ObjectKeyFromObject(obj)), queue.PriorityHigh)
			s.review(obj.GetNamespace(), kinds.References(k, obj))
		},
	}
}

// graceExpired reports whether the grace period of a deleted object has expired. An apiserver drops the object with its next write, whose
// event leads to the same request.
func graceExpired(m *kinds.Mirror[client.Object], was, now client.Object) bool {
	if m == nil || stand(was) != deleting || len(now.GetFinalizers()) > 0 {
		return false
	}
	given := m.GracePeriodSeconds(now)
	return given != nil && *given == 0
}

// onlyStatus says whether nothing but the status differs between two states of an object, as far as can be told by its metadata.
func onlyStatus(was, now client.Object) bool {
	return now.GetUID() == was.GetUID() && now.GetGeneration() != 0 && now.GetGeneration() == was.GetGeneration() &&
		now.GetDeletionTimestamp().Equal(was.GetDeletionTimestamp()) && slices.Equal(now.GetFinalizers(), was.GetFinalizers()) &&
		maps.Equal(now.GetLabels(), was.GetLabels()) && maps.Equal(now.GetAnnotations(), was.GetAnnotations())
}

// initialPriority is the priority of an object that was there before the syncer: what has had no copy yet may have waited for it.
func initialPriority(k *kinds.Kind, obj client.Object) int {
	if k.Down != nil && k.Down.Mirror != nil && !k.Down.Mirror.Started(obj) {
		return queue.PriorityNormal
	}
	return queue.PriorityLow
}

// wake enqueues what may have waited for an object to appear: events of different kinds come in any order.
func (s *session) wake(k *kinds.Kind, obj client.Object) {
	again := func(r queue.Request) { s.enqueue(r, queue.PriorityNormal) }
	if k.Name == namespaceKind {
		s.eachIn(obj.GetName(), again)
		return
	}
	if k.Down == nil || k.Down.Mirror != nil || obj.GetNamespace() == "" {
		return
	}
	// Reading a cache that has synced does not fail; were it to, the objects would be tried again at their next event.
	_ = s.eachReferrer(s.ctx, k.Name, client.ObjectKeyFromObject(obj), again)
}

// enqueueParked enqueues objects that are not carried for now, before their time.
func (s *session) enqueueParked(objects []kinds.ObjectKey, priority int) {
	for _, o := range objects {
		if k := s.kind(o.Kind); k != nil {
			s.enqueue(s.request(k, o.Key), priority)
		}
	}
}

// eachIn calls f with the request of each object that the tenant has in a namespace and that goes down.
func (s *session) eachIn(namespace string, f func(queue.Request)) {
	for k := range s.carried() {
		if k.Down == nil || k.Name == namespaceKind {
			continue
		}
		_ = s.cache.EachKeyBy(s.ctx, k, toolscache.NamespaceIndex, namespace, func(key client.ObjectKey) {
			f(s.request(k, key))
		})
	}
}

// review looks again at what an object of a namespace began or ceased to refer to: it may be wanted now, or not any more.
func (s *session) review(namespace string, refs []kinds.Reference) {
	for _, ref := range refs {
		if to := s.kind(ref.Kind); to != nil && to.Down != nil && to.Down.OnDemand {
			s.enqueue(s.request(to, ref.KeyFor(namespace)), queue.PriorityLow)
		}
	}
}

// differing are the references that are in one of two lists alone.
func differing(was, now []kinds.Reference) []kinds.Reference {
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

// enqueueSuper enqueues all that the super cluster has for the tenant.
func (s *session) enqueueSuper() error {
	for k := range s.carried() {
		if err := s.enqueueCopies(k); err != nil {
			return err
		}
	}
	return nil
}

// enqueueAll enqueues the objects of a kind on both sides.
func (s *session) enqueueAll(k *kinds.Kind) error {
	err := s.cache.EachKey(s.ctx, k, func(key client.ObjectKey) { s.enqueue(s.request(k, key), queue.PriorityLow) })
	if err != nil {
		return fmt.Errorf("listing the tenant's %s objects: %w", k.Name, err)
	}
	return s.enqueueCopies(k)
}

// enqueueCopies enqueues the objects of a kind that the super cluster has of the tenant, or shows to it.
func (s *session) enqueueCopies(k *kinds.Kind) error {
	err := s.eachSuperKey(s.ctx, k, func(key client.ObjectKey) { s.enqueue(s.request(k, key), queue.PriorityLow) })
	if err != nil {
		return fmt.Errorf("listing the tenant's %s objects in the super cluster: %w", k.Name, err)
	}
	return nil
}

// eachSuperKey calls f with the tenant's key of each object of a kind that the super cluster has of the tenant, or could show
// to it. A key may come more than once.
func (s *session) eachSuperKey(ctx context.Context, k *kinds.Kind, f func(client.ObjectKey)) error {
	switch {
	case k.Down != nil && k.Down.Tokens != nil:
		return errors.Join(s.eachCopy(ctx, k, f), s.eachKeptTokens(ctx, func(kept client.Object) { f(tokensKey(kept)) }))
	case k.Down != nil:
		return s.eachCopy(ctx, k, f)
	case k.Up.Node:
		return s.eachNode(ctx, func(name string) { f(client.ObjectKey{Name: name}) })
	case k.Up.Class:
		return s.cacheOf(k).EachKey(ctx, k, f)
	}
	return s.eachShown(ctx, k, f)
}

// eachCopy calls f with the tenant's key of each copy of a kind.
func (s *session) eachCopy(ctx context.Context, k *kinds.Kind, f func(client.ObjectKey)) error {
	return s.cacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.lane(), func(obj client.Object) { f(k.Down.TenantKey(obj)) })
}

// eachNode calls f with the name of the node of each of the tenant's mirrored objects.
func (s *session) eachNode(ctx context.Context, f func(string)) error {
	for k := range s.carried() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		err := s.cacheOf(k).EachBy(ctx, k, caches.IndexCluster, s.lane(), func(obj client.Object) {
			if node := k.Down.Mirror.Node(obj); node != "" {
				f(node)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachShown calls f with the tenant's key of each object that belongs to one of the tenant's namespaces in the super cluster.
func (s *session) eachShown(ctx context.Context, k *kinds.Kind, f func(client.ObjectKey)) error {
	spaces := s.builtin[namespaceKind]
	var failed error
	err := s.cacheOf(spaces).EachBy(ctx, spaces, caches.IndexCluster, s.lane(), func(ns client.Object) {
		err := s.cacheOf(k).EachKeyBy(ctx, k, caches.IndexNamespace, ns.GetName(), func(superKey client.ObjectKey) {
			f(tenantKeyIn(translate.OriginOf(ns).Namespace, superKey))
		})
		failed = errors.Join(failed, err)
	})
	return errors.Join(err, failed)
}
