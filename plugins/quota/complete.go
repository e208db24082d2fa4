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

// completed is a new copy with what the super cluster's admission adds to it and the limits are about: the default priority class of a
// pod that names none, and the overhead of its runtime class. Kubernetes' own quotas see it so, since they are asked last.
func (q *Quota) completed(ctx context.Context, obj client.Object, l limits) (client.Object, error) {
	pod, isPod := obj.(*corev1.Pod)
	if !isPod {
		return obj, nil
	}
	class, err := q.defaultClass(ctx, pod, l)
	if err != nil {
		return nil, fmt.Errorf("looking for the default priority class: %w", err)
	}
	overhead, err := q.overhead(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("looking for the overhead of the pod: %w", err)
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

// defaultClass is the priority class that a pod gets: of several that are the default, the one with the lowest priority.
func (q *Quota) defaultClass(ctx context.Context, pod *corev1.Pod, l limits) (string, error) {
	if pod.Spec.PriorityClassName != "" || len(l.byClass) == 0 {
		return pod.Spec.PriorityClassName, nil
	}
	classes := &schedulingv1.PriorityClassList{}
	if err := q.env.Cache.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		return "", served(err)
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

// overhead is what the runtime class of a pod takes beside its containers; nil if nothing.
func (q *Quota) overhead(ctx context.Context, pod *corev1.Pod) (corev1.ResourceList, error) {
	if pod.Spec.RuntimeClassName == nil || pod.Spec.Overhead != nil {
		return nil, nil
	}
	class := &nodev1.RuntimeClass{}
	err := q.env.Cache.Get(ctx, client.ObjectKey{Name: *pod.Spec.RuntimeClassName}, class, client.UnsafeDisableDeepCopy)
	if err != nil || class.Overhead == nil {
		// Without its class, the super cluster does not have the pod.
		return nil, client.IgnoreNotFound(served(err))
	}
	return class.Overhead.PodFixed, nil
}

// served is no error where a super cluster does not serve a kind, and so has no object of it.
func served(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
