package simulated

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// sweepEvery is the interval between sweeps for pods that are left.
	sweepEvery = 20 * time.Second
	// leftAfter is how long an apiserver may take to remove a pod whose grace
	// period has expired.
	leftAfter = 5 * time.Second
)

// endLeft deletes pods that are left until ctx ends. An apiserver deletes a pod
// in two writes: the first sets the grace period to zero, the second removes
// the pod. If the client disconnects in between, the second is missing; a
// kubelet deletes such a pod again, and kwok does not.
func endLeft(ctx context.Context, client kubernetes.Interface) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := sweep(ctx, client, time.Now()); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to delete pods that are left half deleted, will retry")
		}
	}, sweepEvery)
}

// sweep deletes the pods that are left now.
func sweep(ctx context.Context, client kubernetes.Interface, now time.Time) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !left(pod, now) {
			continue
		}
		again := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
		// Ignores errors: the pod may be gone, or replaced by another one.
		_ = client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, again)
	}
	return nil
}

// left reports whether a pod on these nodes should be gone: its grace period
// has expired, and it has no finalizer.
func left(pod *corev1.Pod, now time.Time) bool {
	grace := pod.DeletionGracePeriodSeconds
	return indexOf(pod.Spec.NodeName) > 0 && pod.DeletionTimestamp != nil && grace != nil && *grace == 0 &&
		len(pod.Finalizers) == 0 && now.Sub(pod.DeletionTimestamp.Time) > leftAfter
}
