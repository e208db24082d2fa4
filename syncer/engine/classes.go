package engine

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// awakenUsed watches those kinds of which the tenant has something that came from the super cluster, and may have to go, and returns
// what tells when it is known.
func (s *engagement) awakenUsed() ([]toolscache.DoneChecker, error) {
	var known []toolscache.DoneChecker
	for _, k := range s.used() {
		registration, err := s.WatchTenant(k)
		if err != nil {
			return nil, err
		}
		known = append(known, registration.HasSyncedChecker())
	}
	return known, nil
}

// used are the kinds that tenants choose from and of which this one has, or may have, an object that came from the super cluster. All are
// asked about at the same time: a restart waits for the answers.
func (s *engagement) used() []*kinds.Kind {
	var asking sync.WaitGroup
	var mu sync.Mutex
	var used []*kinds.Kind
	for k := range s.Carried() {
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
func (s *engagement) uses(k *kinds.Kind) bool {
	ctx, cancel := context.WithTimeout(s.Ctx, s.engine.timeout)
	defer cancel()
	held := &metav1.PartialObjectMetadataList{}
	held.SetGroupVersionKind(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
	if err := s.Cluster.GetAPIReader().List(ctx, held); err != nil {
		return true
	}
	for i := range held.Items {
		if session.FromSuper(&held.Items[i]) {
			return true
		}
	}
	return false
}
