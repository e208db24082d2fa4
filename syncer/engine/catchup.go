package engine

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// catchUpEvery is how long a cache that lags behind is left alone.
const catchUpEvery = 100 * time.Millisecond

// catchUp waits until the cache knows the copies of the tenant's mirrored
// objects that the super cluster has now. Another syncer may have made some a
// moment ago, or an earlier session; and a mirrored object that had a copy is
// ended when there seems to be none.
func catchUp(s *session.Session, timeout time.Duration) error {
	for k := range s.SyncedKinds() {
		if k.Down == nil || k.Down.Mirror == nil {
			continue
		}
		for {
			lags, err := lags(s, timeout, k)
			if err == nil && !lags {
				break
			}
			if err != nil {
				log.FromContext(s.Ctx).Error(err, "Cannot list the tenant's copies; it is retried", "tenant", s.Lane(), "kind", k.Name)
			}
			if !pause.For(s.Ctx, catchUpEvery) {
				return s.Ctx.Err()
			}
		}
	}
	return nil
}

// lags reports whether the super cluster has a copy of the tenant's that the cache
// does not have. One that changed since is caught up with like any other.
func lags(s *session.Session, timeout time.Duration, k *kinds.Kind) (bool, error) {
	ctx, cancel := context.WithTimeout(s.Ctx, timeout)
	defer cancel()
	copies := &metav1.PartialObjectMetadataList{}
	copies.SetGroupVersionKind(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
	t := s.Identity()
	of := client.MatchingLabels{names.VCNamespace: t.Namespace, names.VCName: t.Name}
	if err := s.API.GetAPIReader().List(ctx, copies, of); err != nil {
		return false, err
	}
	for i := range copies.Items {
		cached, err := s.CacheOf(k).Get(ctx, k, client.ObjectKeyFromObject(&copies.Items[i]))
		if err != nil || cached == nil {
			return true, err
		}
	}
	return false, nil
}

// enqueueSuper enqueues all that the super cluster has for the tenant.
func enqueueSuper(s *session.Session) error {
	for k := range s.SyncedKinds() {
		if err := enqueueCopies(s, k); err != nil {
			return err
		}
	}
	return nil
}

// enqueueCopies enqueues the objects of a kind that the super cluster has of
// the tenant, or shows to it.
func enqueueCopies(s *session.Session, k *kinds.Kind) error {
	err := s.EachSuperKey(s.Ctx, k, func(key client.ObjectKey) { s.Enqueue(s.Request(k, key), queue.PriorityLow) })
	if err != nil {
		return fmt.Errorf("list the tenant's %s objects in the super cluster: %w", k.Name, err)
	}
	return nil
}
