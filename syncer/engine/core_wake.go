package engine

import (
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// wake enqueues what may have waited for an object to appear: events of different kinds come in any order.
func (s *session) wake(k *kinds.Kind, obj client.Object) {
	again := func(r queue.Request) { s.enqueue(r, queue.PriorityNormal) }
	if k.Name == namespaceKind {
		eachIn(s, obj.GetName(), again)
		return
	}
	if k.Down == nil || k.Down.Mirror != nil || obj.GetNamespace() == "" {
		return
	}
	// Reading a cache that has synced does not fail; were it to, the objects would be tried again at their next event.
	_ = s.eachReferrer(s.ctx, k.Name, client.ObjectKeyFromObject(obj), again)
}

// eachIn calls f with the request of each object that the tenant has in a namespace and that goes down.
func eachIn(s *session, namespace string, f func(queue.Request)) {
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

// enqueueParked enqueues objects that are not carried for now, before their time.
func (s *session) enqueueParked(objects []kinds.ObjectKey, priority int) {
	for _, o := range objects {
		if k := s.kind(o.Kind); k != nil {
			s.enqueue(s.request(k, o.Key), priority)
		}
	}
}
