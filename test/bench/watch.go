package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch watches the load's pods in a namespace, or in all of them, until ctx
// ends. It reconnects when a connection breaks.
func (l *load) watch(ctx context.Context, t target, seen func(*corev1.Pod, watch.EventType, time.Time)) error {
	list := &corev1.PodList{}
	selector := client.MatchingLabels{ofLoad: l.name}
	if err := t.client.List(ctx, list, client.InNamespace(t.namespace), selector); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return t.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(t.namespace), selector, &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	l.follow.Go(func() {
		for event := range w.ResultChan() {
			if event.Type == watch.Error {
				l.broken <- fmt.Errorf("watch pods: %w", apierrors.FromObject(event.Object))
				return
			}
			if pod, ok := event.Object.(*corev1.Pod); ok {
				seen(pod, event.Type, time.Now())
			}
		}
	})
	return nil
}

// seenInSuper records a watch event of the super cluster. A copy has the name
// of its pod, which is unique within a load.
func (l *load) seenInSuper(pod *corev1.Pod, event watch.EventType, at time.Time) {
	if event == watch.Deleted {
		l.note(pod.Name, superGone, at)
		return
	}
	l.note(pod.Name, copied, at)
	if pod.Spec.NodeName != "" {
		l.note(pod.Name, bound, at)
	}
	if pod.Status.Phase == corev1.PodRunning {
		l.note(pod.Name, ran, at)
	}
}

// seenInTenant records a watch event of a tenant.
func (l *load) seenInTenant(pod *corev1.Pod, event watch.EventType, at time.Time) {
	switch {
	case event == watch.Deleted:
		l.note(pod.Name, gone, at)
	case pod.Status.Phase == corev1.PodRunning:
		l.note(pod.Name, shown, at)
	}
}
