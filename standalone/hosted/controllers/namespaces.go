package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	namespaceResync = 5 * time.Minute
	// namespaceGrace is the time from the deletion of a namespace until its
	// objects are deleted: a request that was admitted before is stored by then.
	// Upstream's controller waits for 5 s, for other apiservers and for other
	// members of etcd. A control plane has one of each.
	namespaceGrace = time.Second
	// firstRetry is the time after which a namespace in which objects remain is
	// checked again. It doubles up to remainingRetry, and up to failureRetry after
	// failures.
	firstRetry     = 250 * time.Millisecond
	remainingRetry = 5 * time.Second
	failureRetry   = time.Minute
)

// namespaces is the namespace controller. It repeats that of upstream with other
// intervals, which are constants there: with them, the deletion of a namespace
// takes 5 s, and of one with pods 21 s.
type namespaces struct {
	synced  cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[string]
	retries workqueue.TypedRateLimiter[string]
	deleter deletion.NamespacedResourcesDeleterInterface
}

func buildNamespaces(ctx context.Context, env *Environment) (func(context.Context), error) {
	discover, err := discoverFirst(env.discovery.ServerPreferredNamespacedResources)
	if err != nil {
		return nil, err
	}
	core := env.client.CoreV1()
	c := newNamespaces(deletion.NewNamespacedResourcesDeleter(
		ctx, core.Namespaces(), collections{env.metadata}, core, discover, corev1.FinalizerKubernetes))
	handler, err := env.typed.Core().V1().Namespaces().Informer().AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue, UpdateFunc: func(_, changed any) { c.enqueue(changed) },
	}, namespaceResync)
	if err != nil {
		return nil, fmt.Errorf("watch namespaces: %w", err)
	}
	c.synced = handler.HasSynced
	return workers(5, c), nil
}

// newNamespaces returns the controller without its informer.
func newNamespaces(deleter deletion.NamespacedResourcesDeleterInterface) *namespaces {
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, failureRetry)
	return &namespaces{retries: retries, queue: workqueue.NewTypedRateLimitingQueue(retries), deleter: deleter}
}

type discoverFunc func() ([]*metav1.APIResourceList, error)

// discoverFirst calls discover once and returns that result first: the
// constructor of upstream's deleter exits the process if it finds nothing.
func discoverFirst(discover discoverFunc) (discoverFunc, error) {
	first, err := discover()
	if len(first) == 0 {
		return nil, errors.Join(errors.New("discovery found no namespaced resources"), err)
	}
	var once sync.Once
	return func() (resources []*metav1.APIResourceList, err error) {
		once.Do(func() { resources = first })
		if resources == nil {
			resources, err = discover()
		}
		return resources, err
	}, nil
}

func (c *namespaces) enqueue(obj any) {
	namespace, ok := obj.(*corev1.Namespace)
	if ok && !namespace.DeletionTimestamp.IsZero() {
		c.queue.AddAfter(namespace.Name, namespaceGrace)
	}
}

// Run runs workers until ctx ends.
func (c *namespaces) Run(ctx context.Context, workers int) {
	defer utilruntime.HandleCrashWithContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	if !cache.WaitForNamedCacheSyncWithContext(ctx, c.synced) {
		return
	}
	for range workers {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) {
				for c.next(ctx) {
				}
			}, time.Second)
		})
	}
	<-ctx.Done()
}

// next empties the next namespace, and reports whether there can be another.
func (c *namespaces) next(ctx context.Context) bool {
	name, closed := c.queue.Get()
	if closed {
		return false
	}
	defer c.queue.Done(name)
	err := c.deleter.Delete(withEmpty(ctx), name)
	_, remain := errors.AsType[*deletion.ResourcesRemainingError](err)
	switch {
	case err == nil:
		c.queue.Forget(name)
	case remain:
		c.queue.AddAfter(name, min(c.retries.When(name), remainingRetry))
	default:
		c.queue.AddRateLimited(name)
		klog.FromContext(ctx).Error(err, "The deletion of a namespace failed", "namespace", name)
	}
	return true
}
