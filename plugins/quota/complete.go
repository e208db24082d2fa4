package quota

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withAdmission returns a new copy as the super cluster's admission completes
// it, as far as limits depend on it: with the default priority class of a pod
// that names none, and with the overhead of its runtime class. Kubernetes' own
// quotas are evaluated last, and so see it like this.
func (q *Quota) withAdmission(ctx context.Context, obj client.Object, l limits) (client.Object, error) {
	pod, isPod := obj.(*corev1.Pod)
	if !isPod {
		return obj, nil
	}
	class, err := q.defaultClass(ctx, pod, l)
	if err != nil {
		return nil, fmt.Errorf("find default priority class: %w", err)
	}
	overhead, err := q.overhead(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("find overhead of pod: %w", err)
	}
	if class == pod.Spec.PriorityClassName && overhead == nil {
		return pod, nil
	}
	whole := *pod
	whole.Spec.PriorityClassName = class
	if overhead != nil {
		whole.Spec.Overhead = overhead
	}
	return &whole, nil
}

// defaultClass returns the priority class that a pod gets by default: of
// several global defaults, the one with the lowest value.
func (q *Quota) defaultClass(ctx context.Context, pod *corev1.Pod, l limits) (string, error) {
	if pod.Spec.PriorityClassName != "" || len(l.byClass) == 0 {
		return pod.Spec.PriorityClassName, nil
	}
	classes := &schedulingv1.PriorityClassList{}
	if err := q.env.Cache.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		return "", ignoreNotServed(err)
	}
	var lowest *schedulingv1.PriorityClass
	for i := range classes.Items {
		if c := &classes.Items[i]; c.GlobalDefault && (lowest == nil || c.Value < lowest.Value) {
			lowest = c
		}
	}
	if lowest == nil {
		return "", nil
	}
	return lowest.Name, nil
}

// overhead returns the overhead that the pod's runtime class adds to it; nil if
// none.
func (q *Quota) overhead(ctx context.Context, pod *corev1.Pod) (corev1.ResourceList, error) {
	if pod.Spec.RuntimeClassName == nil || pod.Spec.Overhead != nil {
		return nil, nil
	}
	class := &nodev1.RuntimeClass{}
	err := q.env.Cache.Get(ctx, client.ObjectKey{Name: *pod.Spec.RuntimeClassName}, class, client.UnsafeDisableDeepCopy)
	if err != nil || class.Overhead == nil {
		// The super cluster rejects a pod whose runtime class does not exist.
		return nil, client.IgnoreNotFound(ignoreNotServed(err))
	}
	return class.Overhead.PodFixed, nil
}

// ignoreNotServed returns nil if the super cluster does not serve the kind, and
// so has no objects of it.
func ignoreNotServed(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
