package engine

import (
	"context"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// standAgain is how soon a failure to watch standing custom resources is
// retried.
const standAgain = 5 * time.Second

// stand watches the standing custom resources that the super cluster has by
// now, and waits for a while until their objects are known. Objects whose
// claims cannot be compared before that are rejected meanwhile. It returns when
// it is to be called again.
func (e *Engine) stand(ctx context.Context) time.Duration {
	known, err := e.custom.Stand(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Custom resources with claims cannot be watched; retrying")
		return min(e.interval, standAgain)
	}
	e.Standing.Complete()
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	toolscache.WaitFor(ctx, "", known...)
	return e.interval
}

// keepStanding watches standing custom resources that are installed later.
func (e *Engine) keepStanding(ctx context.Context, next time.Duration) {
	for pause.For(ctx, next) {
		next = e.stand(ctx)
	}
}

// WatchStanding watches the super cluster's objects of a standing kind. The
// returned checker is done when all objects are known.
func (e *superEvents) WatchStanding(ctx context.Context, k *kinds.Kind) (toolscache.DoneChecker, error) {
	informer, err := e.CacheOf(k).Open(ctx, k, caches.SuperIndexes(k))
	if err != nil {
		return nil, fmt.Errorf("watching all %s objects of the super cluster: %w", k.Name, err)
	}
	changed := e.claim
	if k.Up != nil {
		changed = e.offer
	}
	registration, err := informer.AddEventHandler(caches.Handler{
		Add:    func(obj client.Object, _ bool) { changed(k, nil, obj) },
		Update: func(was, obj client.Object) { changed(k, was, obj) },
		Remove: func(client.Object, bool) {},
	})
	if err != nil {
		return nil, fmt.Errorf("watching all %s objects of the super cluster: %w", k.Name, err)
	}
	return registration.HasSyncedChecker(), nil
}

// UnwatchStanding closes the watch of a standing kind.
func (e *superEvents) UnwatchStanding(ctx context.Context, k *kinds.Kind) error {
	return e.CacheOf(k).Close(ctx, k)
}

// claim reconciles a copy again when its claims are known: of two copies with
// one claim, the later is evicted then.
func (e *superEvents) claim(k *kinds.Kind, _, now client.Object) {
	if s := e.owner(now); s != nil {
		s.Enqueue(s.Request(k, k.Down.TenantKey(now)), queue.PriorityNormal)
	}
}

// offer enqueues the rejected objects of all tenants when an object is
// published to which they may refer. was is nil for a new object.
func (e *superEvents) offer(_ *kinds.Kind, was, now client.Object) {
	if !isPublic(now) || was != nil && isPublic(was) {
		return
	}
	e.tenants.each(func(s *engagement) { s.EnqueuePending(isRejected, queue.PriorityLow) })
}

// isPublic reports whether an object of the super cluster is published to all
// tenants.
func isPublic(obj client.Object) bool { return obj.GetLabels()[names.Public] == session.True }
