package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Keeper labels the namespaces of tenants that have webhooks or policies, so that
// the super cluster asks about what is in them.
type Keeper struct {
	Index   *Index
	Tenants *Tenants
	// Namespaces has those with the label names.Converted.
	Namespaces client.Reader
	// Super writes the label.
	Super client.Writer
	// Register makes the super cluster call the gateway for a tenant.
	Register func(ctx context.Context, clusterKey string) error
	Log      logr.Logger

	queue workqueue.TypedRateLimitingInterface[string]
}

const (
	// lingering is how long namespaces keep the label, and a tenant its engine,
	// after the last webhook or policy is gone: the next one has an effect at once.
	lingering = time.Minute
	// checking is how often a tenant with webhooks or policies is looked at again.
	checking = 5 * time.Minute
)

// Start keeps the labels until ctx ends.
func (k *Keeper) Start(ctx context.Context) {
	context.AfterFunc(ctx, k.queue.ShutDown)
	for {
		key, stopped := k.queue.Get()
		if stopped {
			return
		}
		after, err := k.reconcile(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			k.Log.Error(err, "Keep the admission of a converted tenant", "tenant", key)
			k.queue.AddRateLimited(key)
		default:
			k.queue.Forget(key)
		}
		if after > 0 {
			k.queue.AddAfter(key, after)
		}
		k.queue.Done(key)
	}
}

// Init makes the queue. It is called before all else.
func (k *Keeper) Init() {
	k.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
}

// Changed queues a tenant whose webhooks or policies have changed.
func (k *Keeper) Changed(clusterKey string) {
	if _, has := k.Index.Has(clusterKey); has {
		k.queue.Add(clusterKey)
		return
	}
	k.queue.AddAfter(clusterKey, lingering)
}

// Handler returns what an informer calls that watches the namespaces with the
// label names.Converted.
func (k *Keeper) Handler() cache.ResourceEventHandler {
	check := func(obj any) {
		namespace, ok := obj.(*corev1.Namespace)
		if !ok {
			return
		}
		key := namespace.Labels[names.Converted]
		_, has := k.Index.Has(key)
		if _, labelled := namespace.Labels[names.AdmissionLabel]; labelled != has {
			k.Changed(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: check, UpdateFunc: func(_, obj any) { check(obj) }}
}

// reconcile returns when to look at the tenant again; zero for never.
func (k *Keeper) reconcile(ctx context.Context, key string) (time.Duration, error) {
	_, has := k.Index.Has(key)
	if !has {
		k.Tenants.Stop(key)
		return 0, k.label(ctx, key, false)
	}
	if err := k.Register(ctx, key); err != nil {
		return 0, err
	}
	return checking, k.label(ctx, key, true)
}

// label sets or removes the label on the namespaces of a tenant.
func (k *Keeper) label(ctx context.Context, key string, want bool) error {
	var all corev1.NamespaceList
	if err := k.Namespaces.List(ctx, &all, client.MatchingLabels{names.Converted: key}); err != nil {
		return fmt.Errorf("list the namespaces of tenant %s: %w", key, err)
	}
	value := `""`
	if !want {
		value = "null"
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+names.AdmissionLabel+`":`+value+`}}}`))
	for i := range all.Items {
		namespace := &all.Items[i]
		if _, labelled := namespace.Labels[names.AdmissionLabel]; labelled == want || namespace.DeletionTimestamp != nil && !labelled {
			continue
		}
		if err := k.Super.Patch(ctx, namespace.DeepCopy(), patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label namespace %s: %w", namespace.Name, err)
		}
	}
	return nil
}
