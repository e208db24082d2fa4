package networks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
)

// servePoll is the interval at which a replica checks whether it serves the
// tenant of a pod.
const servePoll = 5 * time.Second

// Attachments prepares the copies of pods for their networks, and releases them
// when they have ended. All that it needs is on the copies, so it works for
// tenants that are not engaged, too.
type Attachments struct {
	Providers *Providers
	Cache     cache.Cache
	Client    client.Client
	// Serves reports whether this replica of the syncer serves a VirtualCluster.
	Serves func(vc types.NamespacedName) bool
	// Interval is the longest pause between two calls about a pod.
	Interval time.Duration
	Logger   logr.Logger

	mu    sync.Mutex
	lanes map[laneKey]*lane
}

// laneKey is a network of a tenant.
type laneKey struct {
	vc              types.NamespacedName
	tenant, network string
}

// Start works until ctx ends.
func (a *Attachments) Start(ctx context.Context) error {
	a.lanes = map[laneKey]*lane{}
	informer, err := a.Cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watch the copies of pods: %w", err)
	}
	_, err = informer.AddEventHandler(caches.Handler{
		Add:    func(obj client.Object, _ bool) { a.add(ctx, obj) },
		Update: func(_, obj client.Object) { a.add(ctx, obj) },
		Remove: func(client.Object, bool) {},
	})
	if err != nil {
		return fmt.Errorf("watch the copies of pods: %w", err)
	}
	<-ctx.Done()
	return nil
}

// add enqueues a copy that its provider has to prepare or to release.
func (a *Attachments) add(ctx context.Context, obj client.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || methodFor(pod) == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	of := laneOf(pod)
	l := a.lanes[of]
	if l == nil {
		l = &lane{
			handle:  func(key client.ObjectKey, c *call) time.Duration { return a.handle(ctx, of, key, c) },
			newCall: func() *call { return a.newCall(of) }, emptied: func() { delete(a.lanes, of) },
			mu: &a.mu, items: map[client.ObjectKey]*item{},
		}
		a.lanes[of] = l
	}
	l.add(client.ObjectKeyFromObject(pod))
}

// laneOf returns the network of a copy.
func laneOf(pod *corev1.Pod) laneKey {
	return laneKey{vcOf(pod), plugins.TenantOf(pod), pod.Labels[networkv1.Label]}
}

func (a *Attachments) newCall(of laneKey) *call {
	return &call{interval: a.Interval, answered: func(q question, latest answer) { a.Providers.record(of.tenant, of.network, q, latest) }}
}

// methodFor returns the method of the provider that a copy needs; empty if it
// needs none.
func methodFor(pod *corev1.Pod) string {
	switch {
	case !slices.Contains(pod.Finalizers, networkv1.Finalizer):
		return ""
	case hasEnded(pod):
		return releaseMethod
	case pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Spec.SchedulingGates, isReadinessGate):
		return prepareMethod
	}
	return ""
}

// isReadinessGate reports whether a gate is the one of networks.
func isReadinessGate(g corev1.PodSchedulingGate) bool { return g.Name == networkv1.ReadinessGate }

// hasEnded reports whether the containers of a copy have ended, never start, or
// are not waited for, as after a deletion by force.
func hasEnded(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && (pod.Spec.NodeName == "" || grace != nil && *grace == 0)
}

// handle calls the provider for a copy in a network, and returns when to do that
// again; negative if that needs an event.
func (a *Attachments) handle(ctx context.Context, in laneKey, key client.ObjectKey, c *call) (again time.Duration) {
	if !a.Serves(in.vc) {
		return min(servePoll, a.Interval)
	}
	pod := &corev1.Pod{}
	if err := a.Client.Get(ctx, key, pod); err != nil || ctx.Err() != nil {
		return -1
	}
	method := methodFor(pod)
	if method == "" {
		return -1
	}
	of, err := attached(pod)
	if err != nil {
		a.Logger.Error(err, "The network of a pod is not known", "pod", key)
		return a.Interval
	}
	c.ask(ctx, question{method: method, kind: of.Network.Spec.Type, uid: pod.UID}, a.Providers.attach(method, of))
	c.await(ctx)
	latest, again := c.answer()
	if again < 0 {
		again = a.Interval // it hangs
	}
	if latest == nil {
		return again
	}
	if err := a.apply(ctx, pod, method, *latest); client.IgnoreNotFound(err) != nil {
		if !apierrors.IsConflict(err) {
			a.Logger.Error(err, "A pod could not be changed for its network", "pod", key)
		}
		return c.retry()
	}
	if latest.isFinal() {
		return -1
	}
	return again
}

// apply writes to a copy what its provider has answered.
func (a *Attachments) apply(ctx context.Context, pod *corev1.Pod, method string, latest answer) error {
	changed := pod.DeepCopy()
	switch {
	case !latest.isFinal() && method == prepareMethod:
		return a.tell(ctx, pod, waitingFor(latest))
	case !latest.isFinal():
		return nil
	case method == releaseMethod:
		changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == networkv1.Finalizer })
	default:
		changed.Spec.SchedulingGates = slices.DeleteFunc(changed.Spec.SchedulingGates, isReadinessGate)
		changed.Annotations[networkv1.ReadinessAnnotation] = "true"
		if latest.attachment.CNIArgs != "" {
			changed.Annotations[networkv1.CNIArgsAnnotation] = latest.attachment.CNIArgs
		}
	}
	return a.Client.Patch(ctx, changed, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
}

// tell writes why a copy waits into its status, which the tenant reads.
func (a *Attachments) tell(ctx context.Context, pod *corev1.Pod, message string) error {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if i < 0 || pod.Status.Conditions[i].Message == message {
		return nil
	}
	changed := pod.DeepCopy()
	changed.Status.Conditions[i].Message = message
	return a.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
}

// waitingFor returns the message of a copy that is not prepared.
func waitingFor(latest answer) string {
	rejection := plugins.AsRejection(latest.err)
	switch {
	case rejection != nil:
		return told("the network rejects the pod: " + rejection.Message)
	case latest.err != nil:
		return "the provider of the network does not work; it is called again, " +
			"and an admin of the platform can read the cause in the syncer's log"
	}
	return told("the network is being prepared: " + latest.attachment.Message)
}

// vcOf returns the VirtualCluster of a copy.
func vcOf(pod *corev1.Pod) types.NamespacedName {
	return names.OwnerKey(pod.Annotations)
}

// attached returns a copy as providers see it.
func attached(pod *corev1.Pod) (network.Pod, error) {
	r := podRecord{}
	if err := json.Unmarshal([]byte(pod.Annotations[names.NetworkRecord]), &r); err != nil {
		return network.Pod{}, fmt.Errorf("read annotation %s: %w", names.NetworkRecord, err)
	}
	notes, vc := pod.Annotations, vcOf(pod)
	of := network.Pod{
		Network: r.network(plugins.Tenant{
			Key: plugins.TenantOf(pod), Name: vc.Name, Namespace: vc.Namespace, UID: r.Tenant,
		}, pod.Labels[networkv1.Label]),
		Namespace: notes[names.Namespace], Name: pod.Name,
		Copy: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID,
	}
	if text := notes[networkv1.NICAnnotation]; text != "" {
		var err error
		if of.NIC, err = network.ParseNIC(text); err != nil {
			return network.Pod{}, fmt.Errorf("read annotation %s: %w", networkv1.NICAnnotation, err)
		}
	}
	return of, nil
}
