package engine

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// A tenant's objects of a kind that it chooses from are watched from when it is first shown one, and not before: few of these kinds
// are used, and together they would be a third of all watches of a tenant. What a tenant makes of its own is nobody's concern.

// asleep says whether the tenant's objects of a kind are not watched. It has then none that came from the super cluster.
func (s *session) asleep(k *kinds.Kind) bool {
	return k.Up != nil && k.Up.Class && !s.cache.Opened(k)
}

// awaken watches the tenant's objects of a kind, if they are not.
func (s *session) awaken(k *kinds.Kind) error {
	s.awakening.Lock()
	defer s.awakening.Unlock()
	if !s.asleep(k) {
		return nil
	}
	_, err := s.watchTenant(k)
	return err
}

// readAwake reads both sides from the caches, that of the tenant too if there is something to show.
func (s *session) readAwake(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (upObjects, error) {
	o, err := s.readUp(ctx, k, key)
	if err != nil || o.shown == nil || !s.asleep(k) {
		return o, err
	}
	if err := s.awaken(k); err != nil {
		return o, err
	}
	return s.readUp(ctx, k, key)
}

// awakenUsed watches those kinds of which the tenant has something that came from the super cluster, and may have to go, and returns
// what tells when it is known.
func (s *session) awakenUsed() ([]toolscache.DoneChecker, error) {
	var known []toolscache.DoneChecker
	for _, k := range s.used() {
		registration, err := s.watchTenant(k)
		if err != nil {
			return nil, err
		}
		known = append(known, registration.HasSyncedChecker())
	}
	return known, nil
}

// used are the kinds that tenants choose from and of which this one has, or may have, an object that came from the super cluster. All are
// asked about at the same time: a restart waits for the answers.
func (s *session) used() []*kinds.Kind {
	var asking sync.WaitGroup
	var mu sync.Mutex
	var used []*kinds.Kind
	for k := range s.carried() {
		if k.Up == nil || !k.Up.Class {
			continue
		}
		asking.Go(func() {
			if s.uses(k) {
				mu.Lock()
				defer mu.Unlock()
				used = append(used, k)
			}
		})
	}
	asking.Wait()
	return used
}

// uses says whether the tenant has an object of a kind that came from the super cluster, or may have.
func (s *session) uses(k *kinds.Kind) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	defer cancel()
	held := &metav1.PartialObjectMetadataList{}
	held.SetGroupVersionKind(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
	if err := s.cluster.GetAPIReader().List(ctx, held); err != nil {
		return true
	}
	for i := range held.Items {
		if fromSuper(&held.Items[i]) {
			return true
		}
	}
	return false
}
