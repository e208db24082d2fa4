package quota

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/plugins"
)

const (
	// retryAfter delays the retry of rejected objects after a resource was
	// freed: more may be freed at once.
	retryAfter = 100 * time.Millisecond
	// statusAfter is how far the status may lag behind.
	statusAfter = time.Second
	// reviewEvery is the interval of reviewing overdue charges and every
	// status.
	reviewEvery = 10 * time.Second
)

// Start counts the usage of all tenants, and follows it until ctx is done.
func (q *Quota) Start(ctx context.Context) error {
	var known []toolscache.DoneChecker
	for _, k := range q.kinds {
		synced, err := q.follow(ctx, k.object, q.countingHandler(ctx, k))
		if meta.IsNoMatchError(err) {
			continue // the super cluster does not serve the kind, so there are no copies of it
		}
		if err != nil {
			return err
		}
		known = append(known, synced)
	}
	volumes, err := q.followVolumes(ctx)
	if err != nil {
		return err
	}
	synced, err := q.follow(ctx, &tenancyv1alpha1.VirtualCluster{}, q.virtualClusterHandler())
	if err != nil {
		return err
	}
	if !toolscache.WaitFor(ctx, "", append(known, volumes, synced)...) {
		return nil
	}
	if err := q.chargeVolumes(ctx); err != nil {
		return err
	}
	close(q.counted)
	var work sync.WaitGroup
	work.Go(func() { q.loosened.each(ctx, retryAfter, q.env.Retry) })
	work.Go(func() { q.changed.each(ctx, statusAfter, func(tenant string) { q.updateStatus(ctx, tenant) }) })
	work.Go(func() { q.reviewOverdue(ctx) })
	work.Wait()
	return nil
}

// follow adds a handler for the objects of a kind. The returned checker is done
// when the handler has been called for all of them.
func (q *Quota) follow(ctx context.Context, obj client.Object, h toolscache.ResourceEventHandler) (toolscache.DoneChecker, error) {
	informer, err := q.env.Cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", obj, err)
	}
	registration, err := informer.AddEventHandler(h)
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", obj, err)
	}
	return registration.HasSyncedChecker(), nil
}

// countingHandler charges tenants for objects of a kind.
func (q *Quota) countingHandler(ctx context.Context, k kind) toolscache.ResourceEventHandler {
	show := func(obj any) {
		if o, tenant := ownedBy(obj); tenant != "" {
			id := object{count: k.count, key: client.ObjectKeyFromObject(o)}
			q.noteChange(tenant, q.ledger.observe(tenant, id, chargeOf(k, o, time.Now())))
			q.chargeVolumeOf(ctx, o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    show,
		UpdateFunc: func(_, obj any) { show(obj) },
		DeleteFunc: func(obj any) {
			if o, tenant := ownedBy(obj); tenant != "" {
				// The volume is charged for before the claim is removed, so
				// that it counts throughout.
				q.chargeVolumeOf(ctx, o)
				id := object{count: k.count, key: client.ObjectKeyFromObject(o)}
				q.noteChange(tenant, q.ledger.remove(tenant, id, o.GetUID(), time.Now()))
			}
		},
	}
}

// ownedBy returns an object, which may be deleted, and the tenant that owns it;
// empty if no tenant does. The root namespace belongs to vc-manager.
func ownedBy(obj any) (client.Object, string) {
	o, ok := lastknown.Of[client.Object](obj)
	if !ok {
		return nil, ""
	}
	tenant := plugins.TenantOf(o)
	if o.GetName() == tenant && o.GetNamespace() == "" {
		return nil, ""
	}
	return o, tenant
}

// noteChange enqueues a tenant whose usage has changed; less is set if it
// decreased.
func (q *Quota) noteChange(tenant string, less bool) {
	q.changed.put(tenant)
	if less {
		q.loosened.put(tenant)
	}
}

// virtualClusterHandler follows the limits of VirtualClusters.
func (q *Quota) virtualClusterHandler() toolscache.ResourceEventHandler {
	know := func(obj any) {
		if vc, ok := obj.(*tenancyv1alpha1.VirtualCluster); ok && vc.Status.ClusterNamespace != "" {
			q.know(vc)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    know,
		UpdateFunc: func(_, obj any) { know(obj) },
		DeleteFunc: func(obj any) {
			if vc, ok := lastknown.Of[*tenancyv1alpha1.VirtualCluster](obj); ok {
				q.forget(vc.Status.ClusterNamespace)
			}
		},
	}
}

func (q *Quota) know(vc *tenancyv1alpha1.VirtualCluster) {
	now := tenant{vc: client.ObjectKeyFromObject(vc)}
	now.limits, now.err = limitsOf(vc.Spec.Quota)
	key := vc.Status.ClusterNamespace
	q.mu.Lock()
	was, known := q.tenants[key]
	q.tenants[key] = now
	q.mu.Unlock()
	if !known || !equality.Semantic.DeepEqual(was.limits.hard, now.limits.hard) ||
		!equality.Semantic.DeepEqual(was.limits.byClass, now.limits.byClass) {
		q.noteChange(key, true)
	}
}

func (q *Quota) forget(key string) {
	q.mu.Lock()
	delete(q.tenants, key)
	q.mu.Unlock()
	q.ledger.forget(key)
	q.locks.Forget(key)
	q.metrics.forget(key)
}

// reviewOverdue reviews overdue charges periodically until ctx is done.
func (q *Quota) reviewOverdue(ctx context.Context) {
	ticks := time.NewTicker(reviewEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			q.review(ctx, now)
			q.enqueueAll()
		}
	}
}

// enqueueAll enqueues every tenant for a status update: this replica may have
// begun to serve it.
func (q *Quota) enqueueAll() {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for key := range q.tenants {
		q.changed.put(key)
	}
}

// review replaces overdue charges by those for the objects in the cache.
func (q *Quota) review(ctx context.Context, now time.Time) {
	for tenant, ids := range q.ledger.due(now) {
		for _, id := range ids {
			observed, err := q.observe(ctx, id, now)
			if err != nil {
				q.env.Logger.Error(err, "Cannot review an assumed charge", "tenant", tenant, "object", id.key)
				continue
			}
			q.ledger.settle(tenant, id, observed)
			q.noteChange(tenant, true)
		}
	}
}

// observe returns the charge for an object in the cache; nil if it is not
// there, and for a write, which is not under way any more.
func (q *Quota) observe(ctx context.Context, id object, now time.Time) (*charge, error) {
	if id.awaits != "" {
		return nil, nil
	}
	for _, k := range q.kinds {
		if k.count != id.count {
			continue
		}
		obj := k.object.DeepCopyObject().(client.Object)
		if err := q.env.Cache.Get(ctx, id.key, obj); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return nil, err
		}
		c := chargeOf(k, obj, now)
		return &c, nil
	}
	return nil, nil
}
