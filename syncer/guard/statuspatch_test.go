package guard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// running returns a running pod.
func running() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid", ResourceVersion: "7", Labels: map[string]string{"a": "1"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example/web:1", Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}},
			Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.7",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Image: "example/web:1"}},
		},
	}
}

func custom(status map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	obj.SetAPIVersion("example.com/v1")
	obj.SetKind("Widget")
	obj.SetUID("web-uid")
	if status != nil {
		obj.Object["status"] = status
	}
	return obj
}

// TestStatusPatch compares it with the patch of the complete object.
func TestStatusPatch(t *testing.T) {
	pod := func(change func(*corev1.PodStatus)) client.Object {
		p := running()
		change(&p.Status)
		return p
	}
	for name, tc := range map[string]struct {
		was, now client.Object
		want     string
	}{
		"nothing": {running(), running(), `{"metadata":{"uid":"web-uid"}}`},
		"another phase": {
			running(), pod(func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed }), `{"metadata":{"uid":"web-uid"},"status":{"phase":"Failed"}}`,
		},
		"a removed field": {
			running(), pod(func(s *corev1.PodStatus) { s.PodIP = "" }), `{"metadata":{"uid":"web-uid"},"status":{"podIP":null}}`,
		},
		"one condition of two": {
			running(), pod(func(s *corev1.PodStatus) { s.Conditions[1].Status = corev1.ConditionFalse }),
			`{"metadata":{"uid":"web-uid"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"},{"type":"Ready"}],` +
				`"conditions":[{"status":"False","type":"Ready"}]}}`,
		},
		"a custom resource with a status": {
			custom(nil), custom(map[string]any{"ready": true}), `{"metadata":{"uid":"web-uid"},"status":{"ready":true}}`,
		},
		"a custom resource with another status": {
			custom(map[string]any{"ready": true, "n": int64(1)}), custom(map[string]any{"ready": false, "n": int64(1)}),
			`{"metadata":{"uid":"web-uid"},"status":{"ready":false}}`,
		},
		"a custom resource without its status": {
			custom(map[string]any{"ready": true}), custom(nil), `{"metadata":{"uid":"web-uid"},"status":null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, whole := StatusPatch{tc.was}, SameObject(tc.was, patchByKeys(tc.was))
			got, err := patch.Data(tc.now)
			if diff := cmp.Diff(tc.want, string(got)); err != nil || diff != "" {
				t.Errorf("patch: %v (-want +got):\n%s", err, diff)
			}
			if of, err := whole.Data(tc.now); err != nil || string(of) != string(got) {
				t.Errorf("of the whole object: %s, %v", of, err)
			}
			if patch.Type() != whole.Type() {
				t.Errorf("the type of the patch is %s, want %s", patch.Type(), whole.Type())
			}
		})
	}
}

func TestStatusPatchLeavesTheRestAlone(t *testing.T) {
	was, now := running(), running()
	now.Labels["a"], now.Spec.Hostname, now.Status.PodIP = "2", "other", "10.0.0.8"
	got, err := StatusPatch{Was: was}.Data(now)
	if want := `{"metadata":{"uid":"web-uid"},"status":{"podIP":"10.0.0.8"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestStatusPatchOfWhatHasNone(t *testing.T) {
	if data, err := (StatusPatch{&corev1.ConfigMap{}}).Data(&corev1.ConfigMap{}); err == nil {
		t.Errorf("got %s", data)
	}
}

// BenchmarkStatusPatch measures the patch that marks a pod ready.
func BenchmarkStatusPatch(b *testing.B) {
	was, now := running(), running()
	now.Status.Conditions[1].Status = corev1.ConditionFalse
	for name, patch := range map[string]client.Patch{"status": StatusPatch{Was: was}, "whole": SameObject(was, patchByKeys(was))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := patch.Data(now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
