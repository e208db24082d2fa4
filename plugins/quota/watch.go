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
	"github.com/virtualcluster/virtualcluster/plugins"
)

const (
	// retryAfter is how long what was rejected waits after something has become free: more may become free at once.
	retryAfter = 100 * time.Millisecond
	// statusAfter is how far the status may lag.
	statusAfter = time.Second
	// reviewEvery is how often what is overdue is looked for, and every status looked at.
	reviewEvery = 10 * time.Second
)

// Start counts what tenants have, and follows that until ctx ends.
func (q *Quota) Start(ctx context.Context) error {
	var known []toolscache.DoneChecker
	for _, k := range q.kinds {
		synced, err := q.follow(ctx, k.object, q.counting(ctx, k))
		if meta.IsNoMatchError(err) {
			continue // the super cluster does not serve it, so no tenant has one
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
	synced, err := q.follow(ctx, &tenancyv1alpha1.VirtualCluster{}, q.knowing())
	if err != nil {
		return err
	}
	if !toolscache.WaitFor(ctx, "", append(known, volumes, synced)...) {
		return nil
	}
	if err := q.showVolumes(ctx); err != nil {
		return err
	}
	close(q.counted)
	var work sync.WaitGroup
	work.Go(func() { q.loosened.each(ctx, retryAfter, q.env.Retry) })
	work.Go(func() { q.changed.each(ctx, statusAfter, func(tenant string) { q.tell(ctx, tenant) }) })
	work.Go(func() { q.reviewOverdue(ctx) })
	work.Wait()
	return nil
}

// follow has a handler told of the objects of a kind. What is returned tells when it knows them all.
func (q *Quota) follow(ctx context.Context, obj client.Object, h toolscache.ResourceEventHandler) (toolscache.DoneChecker, error) {
	informer, err := q.env.Cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", obj, err)
	}
	registration, err := informer.AddEventHandler(h)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", obj, err)
	}
	return registration.HasSyncedChecker(), nil
}

// counting charges tenants for objects of a kind.
func (q *Quota) counting(ctx context.Context, k kind) toolscache.ResourceEventHandler {
	show := func(obj any) {
		if o, tenant := ownedBy(obj); tenant != "" {
			id := object{k.count, client.ObjectKeyFromObject(o)}
			q.note(tenant, q.ledger.show(tenant, id, chargeOf(k, o, time.Now())))
			q.showVolumeOf(ctx, o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    show,
		UpdateFunc: func(_, obj any) { show(obj) },
		DeleteFunc: func(obj any) {
			if o, tenant := ownedBy(lastKnown(obj)); tenant != "" {
				// Before the claim counts no more, so that its volume counts throughout.
				q.showVolumeOf(ctx, o)
				id := object{k.count, client.ObjectKeyFromObject(o)}
				q.note(tenant, q.ledger.remove(tenant, id, o.GetUID(), time.Now()))
			}
		},
	}
}

// lastKnown is an object that is gone as it was last seen, also if its deletion was missed.
func lastKnown(obj any) any {
	if gone, missed := obj.(toolscache.DeletedFinalStateUnknown); missed {
		return gone.Obj
	}
	return obj
}

// ownedBy is whose copy an object is; nobody's if it is not one. The root namespace is the manager's.
func ownedBy(obj any) (client.Object, string) {
	o, ok := obj.(client.Object)
	if !ok {
		return nil, ""
	}
	tenant := plugins.TenantOf(o)
	if o.GetName() == tenant && o.GetNamespace() == "" {
		return nil, ""
	}
	return o, tenant
}

// note has it looked at that something of a tenant's has changed.
func (q *Quota) note(tenant string, less bool) {
	q.changed.put(tenant)
	if less {
		q.loosened.put(tenant)
	}
}

// knowing takes over what VirtualClusters say.
func (q *Quota) knowing() toolscache.ResourceEventHandler {
	know := func(obj any) {
		if vc, ok := obj.(*tenancyv1alpha1.VirtualCluster); ok && vc.Status.ClusterNamespace != "" {
			q.know(vc)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    know,
		UpdateFunc: func(_, obj any) { know(obj) },
		DeleteFunc: func(obj any) {
			if vc, ok := lastKnown(obj).(*tenancyv1alpha1.VirtualCluster); ok {
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
		q.note(key, true)
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

// reviewOverdue looks again, until ctx ends, at what no event has told of in time.
func (q *Quota) reviewOverdue(ctx context.Context) {
	ticks := time.NewTicker(reviewEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			q.review(ctx, now)
			q.tellAll()
		}
	}
}

// tellAll has the status of every tenant looked at: this replica may have come to serve it.
func (q *Quota) tellAll() {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for key := range q.tenants {
		q.changed.put(key)
	}
}

// review replaces what is overdue by what the cache shows.
func (q *Quota) review(ctx context.Context, now time.Time) {
	for tenant, ids := range q.ledger.due(now) {
		for _, id := range ids {
			there, err := q.look(ctx, id, now)
			if err != nil {
				q.env.Logger.Error(err, "Cannot look at what is assumed", "tenant", tenant, "object", id.key)
				continue
			}
			q.ledger.settle(tenant, id, there)
			q.note(tenant, true)
		}
	}
}

// look is the charge for an object as the cache shows it; nil if it does not.
func (q *Quota) look(ctx context.Context, id object, now time.Time) (*charge, error) {
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
