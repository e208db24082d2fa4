package engine

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// usedClasses returns the kinds of classes that the tenant has, or may have,
// from the super cluster. All are listed at the same time: a restart waits for
// it.
func usedClasses(s *session.Session, timeout time.Duration) []*kinds.Kind {
	var asking sync.WaitGroup
	var mu sync.Mutex
	var used []*kinds.Kind
	for k := range s.SyncedKinds() {
		if k.Up == nil || !k.Up.Class {
			continue
		}
		asking.Go(func() {
			if usesClass(s, timeout, k) {
				mu.Lock()
				defer mu.Unlock()
				used = append(used, k)
			}
		})
	}
	asking.Wait()
	return used
}

// usesClass reports whether the tenant has an object of a kind that came from
// the super cluster, or may have.
func usesClass(s *session.Session, timeout time.Duration, k *kinds.Kind) bool {
	ctx, cancel := context.WithTimeout(s.Ctx, timeout)
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
