package engine

import (
	"context"
	"fmt"
	"maps"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/own"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// superEvents turns events of the super cluster into requests for objects of
// the tenants that they concern.
type superEvents struct {
	*shared

	tenants *tenants
}

// watchBuiltin watches the super cluster's objects of all kinds that are built
// in, and waits until they are known.
func (e *superEvents) watchBuiltin(ctx context.Context) error {
	var known []toolscache.DoneChecker
	for _, k := range e.Builtin {
		synced, err := e.WatchSuper(ctx, k)
		if err != nil {
			return err
		}
		known = append(known, synced)
	}
	if e.TokenKinds.Of != nil {
		synced, err := watchTokens(ctx, e.SuperCluster, e.owner)
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

// owner is the engaged tenant whose copy an object of the super cluster is, or
// nil.
func (e *superEvents) owner(obj client.Object) *engagement {
	return e.tenants.get(multicluster.ClusterName(translate.OriginOf(obj).Cluster))
}

// WatchSuper watches the super cluster's objects of a kind, whose events lead
// to requests. The returned checker is done when all objects are known.
func (e *superEvents) WatchSuper(ctx context.Context, k *kinds.Kind) (toolscache.DoneChecker, error) {
	informer, err := e.CacheOf(k).Open(ctx, k, caches.SuperIndexes(k))
	if err != nil {
		return nil, fmt.Errorf("watching the super cluster's %s objects: %w", k.Name, err)
	}
	registration, err := informer.AddEventHandler(e.superHandler(k))
	if err != nil {
		return nil, fmt.Errorf("watching the super cluster's %s objects: %w", k.Name, err)
	}
	return registration.HasSyncedChecker(), nil
}

// UnwatchSuper closes the watch of a kind, and forgets its objects.
func (e *superEvents) UnwatchSuper(ctx context.Context, k *kinds.Kind) error {
	defer e.usage.Forget(k.Resource)
	return e.CacheOf(k).Close(ctx, k)
}

// superHandler handles the super cluster's events of one kind.
func (e *superEvents) superHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
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
			s.SuperRecent.Seen(k.Name, obj)
			s.Enqueue(s.Request(k, key), queue.PriorityLow)
		}
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { show(obj) },
		Update: func(_, obj client.Object) { show(obj) },
		Remove: func(obj client.Object, _ bool) { show(obj) },
	}
}

// isRejected reports whether the super cluster rejects an object.
func isRejected(e pending.Entry) bool { return e.State == pending.Rejected && !e.Denied }

// classHandler handles events of what every tenant may be offered. Rejected
// objects may depend on them.
func (e *superEvents) classHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object) {
		e.tenants.each(func(s *engagement) {
			s.Enqueue(s.Request(k, client.ObjectKeyFromObject(obj)), queue.PriorityNormal)
			s.EnqueuePending(isRejected, queue.PriorityLow)
		})
	}
	return caches.Handler{
		Add:    func(obj client.Object, _ bool) { event(obj) },
		Update: func(_, obj client.Object) { event(obj) },
		Remove: func(obj client.Object, _ bool) { event(obj) },
	}
}

// copyHandler handles events of copies of tenants' objects. Those of tenants
// that are not engaged are reconciled when they are.
func (e *superEvents) copyHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(obj client.Object, priority int) *engagement {
		if e.reviewOwn(k, obj, func(s *engagement) { s.SuperRecent.Seen(k.Name, obj) }) {
			return nil
		}
		s := e.owner(obj)
		if s != nil {
			s.SuperRecent.Seen(k.Name, obj)
			s.Enqueue(s.Request(k, k.Down.TenantKey(obj)), priority)
			s.events.affect(k, obj)
		}
		return s
	}
	return caches.Handler{
		Add: func(obj client.Object, _ bool) {
			e.usage.Observe(k, nil, obj)
			s := event(obj, queue.PriorityNormal)
			if s != nil {
				s.events.retarget(k, nil, obj)
			}
			e.tell(k, nil, obj, s != nil)
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
				s.events.retarget(k, was, obj)
			}
			e.tell(k, was, obj, s != nil)
		},
		Remove: func(obj client.Object, _ bool) {
			e.usage.Observe(k, obj, nil)
			if e.reviewOwn(k, obj, func(s *engagement) { s.SuperRecent.Ended(k.Name, obj) }) {
				return
			}
			s := e.owner(obj)
			e.tell(k, obj, nil, s != nil)
			if s == nil {
				return
			}
			s.SuperRecent.Ended(k.Name, obj)
			event(obj, queue.PriorityHigh)
			s.events.retarget(k, obj, nil)
			s.events.freed(k)
			if m := k.Down.Mirror; m != nil && m.Node(obj) != "" {
				s.EnqueueLater(s.Request(s.Builtin[session.NodeKind], client.ObjectKey{Name: m.Node(obj)}), e.nodeLinger)
			}
		},
	}
}

// nodeHandler handles events of nodes, of which every tenant may have objects,
// and ignores heartbeats.
func (e *superEvents) nodeHandler(k *kinds.Kind) toolscache.ResourceEventHandler {
	event := func(was, now client.Object) {
		if !e.known() {
			return
		}
		key := client.ObjectKeyFromObject(now)
		e.tenants.each(func(s *engagement) {
			if s.concernsNode(was, now) {
				s.Enqueue(s.Request(k, key), queue.PriorityNormal)
			}
		})
	}
	return caches.Handler{
		Add: func(obj client.Object, _ bool) { event(obj, obj) },
		Update: func(was, now client.Object) {
			if !maps.Equal(was.GetLabels(), now.GetLabels()) || !wire.Equal(k.Up.Desired(kinds.View{}, was), k.Up.Desired(kinds.View{}, now)) {
				event(was, now)
			}
		},
		Remove: func(obj client.Object, _ bool) { event(obj, obj) },
	}
}

// concernsNode reports whether the tenant sees a node of the super cluster, or
// has seen it before a change.
func (s *engagement) concernsNode(was, now client.Object) bool {
	if t := s.Identity(); t.ShowsNode(was.GetLabels()) || t.ShowsNode(now.GetLabels()) {
		return true
	}
	used, err := s.UsesNode(s.Ctx, now.GetName())
	return used || err != nil
}

// viewers returns the tenants that an event of such an object concerns, with
// the key of each: the one whose namespace it is in or belongs to and, if it is
// in none, those that hold it because it belonged to theirs before.
func (e *superEvents) viewers(k *kinds.Kind, obj client.Object) map[*engagement]client.ObjectKey {
	viewers := map[*engagement]client.ObjectKey{}
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
	e.tenants.each(func(s *engagement) {
		// A cache that is not full yet would be waited for. Its objects are
		// reconciled when they arrive.
		if !s.Begun.Load() || s.Kind(k.Name) == nil {
			return
		}
		if held, err := s.TenantObject(s.Ctx, k, key); held != nil || err != nil {
			viewers[s] = key
		}
	})
	return viewers
}

// viewer is the tenant that sees an object of the super cluster because of its
// namespace, and the tenant's key of it.
func (e *superEvents) viewer(k *kinds.Kind, obj client.Object) (*engagement, client.ObjectKey) {
	namespace := k.Up.Namespace(obj)
	if namespace == "" {
		return nil, client.ObjectKey{}
	}
	spaces := e.Builtin[session.NamespaceKind]
	ns, err := e.CacheOf(spaces).Get(context.Background(), spaces, client.ObjectKey{Name: namespace})
	if err != nil || ns == nil {
		return nil, client.ObjectKey{}
	}
	origin := translate.OriginOf(ns)
	return e.tenants.get(multicluster.ClusterName(origin.Cluster)), session.TenantKeyIn(origin.Namespace, client.ObjectKeyFromObject(obj))
}

// reviewOwn enqueues the namespace of an object of the syncer's own that has
// changed, after calling note, and reports whether the object is one.
func (e *superEvents) reviewOwn(k *kinds.Kind, obj client.Object, note func(*engagement)) bool {
	if !own.IsOwn(k, obj) {
		return false
	}
	if !e.known() {
		return true // each namespace is reconciled when its tenant begins
	}
	spaces := e.Builtin[session.NamespaceKind]
	ns, err := e.CacheOf(spaces).Get(context.Background(), spaces, client.ObjectKey{Name: obj.GetNamespace()})
	if err != nil || ns == nil {
		return true
	}
	origin := translate.OriginOf(ns)
	if s := e.tenants.get(multicluster.ClusterName(origin.Cluster)); s != nil {
		note(s)
		s.Enqueue(s.Request(spaces, client.ObjectKey{Name: origin.Namespace}), queue.PriorityNormal)
	}
	return true
}
