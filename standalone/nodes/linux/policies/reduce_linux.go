package policies

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reduce drops what no policy matches before an object is cached: the caches
// have all pods of the cluster.
func reduce(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return reducePod(pod), nil
	}
	if object, err := meta.Accessor(obj); err == nil {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	return obj, nil
}

func reducePod(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
		},
		Spec: corev1.PodSpec{
			HostNetwork: pod.Spec.HostNetwork,
			Containers:  reduceContainers(pod.Spec.Containers), InitContainers: reduceContainers(pod.Spec.InitContainers),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP},
	}
}

// reduceContainers keeps the containers with ports.
func reduceContainers(containers []corev1.Container) []corev1.Container {
	var some []corev1.Container
	for i := range containers {
		if c := &containers[i]; len(c.Ports) > 0 {
			some = append(some, corev1.Container{Ports: c.Ports, RestartPolicy: c.RestartPolicy})
		}
	}
	return some
}
