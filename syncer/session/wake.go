package session

import (
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// Wake enqueues what may have waited for an object to appear: events of different kinds come in any order.
func (s *Session) Wake(k *kinds.Kind, obj client.Object) {
	again := func(r queue.Request) { s.Enqueue(r, queue.PriorityNormal) }
	if k.Name == NamespaceKind {
		eachIn(s, obj.GetName(), again)
		return
	}
	if k.Down == nil || k.Down.Mirror != nil || obj.GetNamespace() == "" {
		return
	}
	// Reading a cache that has synced does not fail; were it to, the objects would be tried again at their next event.
	_ = s.eachReferrer(s.Ctx, k.Name, client.ObjectKeyFromObject(obj), again)
}

// eachIn calls f with the request of each object that the tenant has in a namespace and that goes down.
func eachIn(s *Session, namespace string, f func(queue.Request)) {
	for k := range s.Carried() {
		if k.Down == nil || k.Name == NamespaceKind {
			continue
		}
		_ = s.Cache.EachKeyBy(s.Ctx, k, toolscache.NamespaceIndex, namespace, func(key client.ObjectKey) {
			f(s.Request(k, key))
		})
	}
}

// Review looks again at what an object of a namespace began or ceased to refer to: it may be wanted now, or not any more.
func (s *Session) Review(namespace string, refs []kinds.Reference) {
	for _, ref := range refs {
		if to := s.Kind(ref.Kind); to != nil && to.Down != nil && to.Down.OnDemand {
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

// EnqueuePending enqueues the pending objects that f selects before their time.
func (s *Session) EnqueuePending(f func(pending.Entry) bool, priority int) {
	for _, o := range s.Pending.Select(f) {
		if k := s.Kind(o.Kind); k != nil {
			s.Enqueue(s.Request(k, o.Key), priority)
		}
	}
}
