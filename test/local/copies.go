package local

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Copies watches the pods of a super cluster, so that it also sees short-lived
// copies.
type Copies struct {
	cancel context.CancelFunc
	ended  chan error

	mu   sync.Mutex
	seen map[origin]sets.Set[types.UID]
	// there has the UIDs of each tenant's copies that exist and have not
	// terminated; most is the maximum of each tenant so far.
	there map[string]sets.Set[types.UID]
	most  map[string]int
}

// origin identifies the tenant's object of a copy.
type origin struct {
	cluster string
	uid     types.UID
}

// WatchCopies starts the watch and returns when the cache has synced.
func WatchCopies(ctx context.Context, super *rest.Config) (*Copies, error) {
	pods, err := cache.New(super, cache.Options{})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	c := &Copies{
		cancel: cancel, ended: make(chan error, 1),
		seen: map[origin]sets.Set[types.UID]{}, there: map[string]sets.Set[types.UID]{}, most: map[string]int{},
	}
	go func() { c.ended <- pods.Start(running) }()
	if err := c.watch(ctx, pods); err != nil {
		return nil, fmt.Errorf("watch the super cluster's pods: %w; %w", err, c.Stop())
	}
	return c, nil
}

func (c *Copies) watch(ctx context.Context, pods cache.Cache) error {
	informer, err := pods.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    c.see,
		UpdateFunc: func(_, obj any) { c.see(obj) },
		DeleteFunc: c.miss,
	})
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// see records the origin of a pod.
func (c *Copies) see(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	from := translate.OriginOf(pod)
	if from.Cluster == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := origin{from.Cluster, from.UID}
	if c.seen[key] == nil {
		c.seen[key] = sets.New[types.UID]()
	}
	c.seen[key].Insert(pod.UID)
	if c.there[from.Cluster] == nil {
		c.there[from.Cluster] = sets.New[types.UID]()
	}
	if ended(pod) {
		c.there[from.Cluster].Delete(pod.UID)
		return
	}
	c.there[from.Cluster].Insert(pod.UID)
	c.most[from.Cluster] = max(c.most[from.Cluster], c.there[from.Cluster].Len())
}

// ended reports whether a pod has released its resources: it has terminated, or
// it was force-deleted, which takes the apiserver two steps.
func ended(pod *corev1.Pod) bool {
	forced := pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0
	return forced || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// miss records the deletion of a pod.
func (c *Copies) miss(obj any) {
	pod, ok := lastknown.Of[*corev1.Pod](obj)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there[translate.OriginOf(pod).Cluster].Delete(pod.UID)
}

// Now returns the number of a tenant's copies that have not terminated.
func (c *Copies) Now(t *Tenant) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.there[t.Key()].Len()
}

// Most returns the highest number of copies that a tenant has had at once.
func (c *Copies) Most(t *Tenant) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most[t.Key()]
}

// Of returns the UIDs of all copies that a tenant's pod has had. A running pod
// should have had exactly one.
func (c *Copies) Of(t *Tenant, pod types.UID) []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sets.List(c.seen[origin{t.Key(), pod}])
}

// Duplicated lists the tenant's pods that have had more than one copy, one a line.
func (c *Copies) Duplicated(t *Tenant) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for from, copies := range c.seen {
		if from.cluster == t.Key() && len(copies) > 1 {
			found = append(found, fmt.Sprintf("the pod with UID %s has had the copies %v", from.uid, sets.List(copies)))
		}
	}
	slices.Sort(found)
	return found
}

// Stop stops the watch and waits for it.
func (c *Copies) Stop() error {
	c.cancel()
	return <-c.ended
}
