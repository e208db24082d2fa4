package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// BenchmarkPod measures the functions of the most frequent kind, for a typical
// pod of a Deployment.
func BenchmarkPod(b *testing.B) {
	k, ok := Pod().(kinds.Down[*corev1.Pod])
	if !ok {
		b.Fatal("pods are not synced down")
	}
	tenant := ordinaryPod()
	desired, err := k.Desired(view, tenant)
	if err != nil {
		b.Fatal(err)
	}
	super := desired.DeepCopy()
	super.Spec.NodeName = "node-1"
	super.Status = runningStatus()
	b.Run("Desired", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := k.Desired(view, tenant); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Merge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.Merge(super.DeepCopy(), desired)
		}
	})
	b.Run("Status", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.Status(view, tenant.DeepCopy(), super)
		}
	})
}

func ordinaryPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: meta("web-5d4f8-x2k9v")}
	pod.Labels = map[string]string{"app.kubernetes.io/name": "web", "pod-template-hash": "5d4f8"}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8", UID: "rs-uid", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	pod.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Image: "example/web:1",
			Env:   []corev1.EnvVar{{Name: "MODE", Value: "fast"}},
			Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/config"}},
		}},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}},
		}}},
		ServiceAccountName: "default", DNSPolicy: corev1.DNSClusterFirst, RestartPolicy: corev1.RestartPolicyAlways,
	}
	return pod
}

func runningStatus() corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.7", PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}}, HostIP: "192.0.2.1",
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Ready: true, Started: new(true), Image: "example/web:1", ImageID: "sha256:1",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1, 0)}},
		}},
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	return status
}
