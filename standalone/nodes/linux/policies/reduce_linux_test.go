package policies

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReduce: the enforcer makes the same of a reduced pod, and little else is
// left of it.
func TestReduce(t *testing.T) {
	ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
	full := podAt("web", "10.0.0.1", func(p *corev1.Pod) {
		p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"large": "value"}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		p.Spec.Volumes = []corev1.Volume{{Name: "data"}}
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "app", Ports: ports}, {Name: "silent"}}
		p.Spec.InitContainers = []corev1.Container{
			{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Ports: ports}, {Name: "setup", Ports: ports},
		}
		p.Status.Phase = corev1.PodRunning
	})
	of := func(pod any) Pod {
		e := enforcing(t, pod)
		c, err := e.cluster()
		if err != nil || len(c.Pods) != 1 {
			t.Fatalf("there are %d pods (%v)", len(c.Pods), err)
		}
		return c.Pods[0]
	}
	reduced, err := reduce(full.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(of(full), of(reduced), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("a reduced pod is another one (-want +got):\n%s", diff)
	}
	pod := reduced.(*corev1.Pod)
	if pod.ManagedFields != nil || pod.Annotations != nil || pod.Spec.Volumes != nil || len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Image != "" {
		t.Errorf("left are %v", pod)
	}
	for _, gone := range []*corev1.Pod{
		podAt("job", "10.0.0.2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		podAt("host", "10.0.0.3", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
	} {
		reduced, _ := reduce(gone)
		if e := enforcing(t); e.address(reduced.(*corev1.Pod)).IsValid() {
			t.Errorf("pod %s has an address", gone.Name)
		}
	}
	ns, err := reduce(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", Labels: map[string]string{"tier": "front"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}})
	if left := ns.(*corev1.Namespace); err != nil || left.ManagedFields != nil || left.Labels["tier"] != "front" {
		t.Errorf("left are %v (%v)", ns, err)
	}
}
