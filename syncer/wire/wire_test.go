package wire

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", Labels: map[string]string{"a": "1", "b": "2", "c": "3"},
			CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			Containers: []corev1.Container{{
				Name: "main", Image: "example/web:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func TestEqual(t *testing.T) {
	custom := func(size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	}
	for name, tc := range map[string]struct {
		a, b any
		want bool
	}{
		"the same":                               {pod(), pod(), true},
		"an empty map and none":                  {pod(), pod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{} }), true},
		"an empty list and none":                 {pod(), pod(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{} }), true},
		"a quantity in other words":              {pod(), pod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000m") }), true},
		"a time of another zone":                 {pod(), pod(func(p *corev1.Pod) { p.CreationTimestamp.Time = p.CreationTimestamp.In(time.FixedZone("x", 3600)) }), true},
		"a type that is filled in":               {pod(), pod(func(p *corev1.Pod) { p.Kind = "Pod" }), true},
		"another quantity":                       {pod(), pod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }), false},
		"another text of the same length":        {pod(), pod(func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }), false},
		"another label":                          {pod(), pod(func(p *corev1.Pod) { p.Labels["c"] = "4" }), false},
		"a label more":                           {pod(), pod(func(p *corev1.Pod) { p.Labels["d"] = "4" }), false},
		"a pointer to nothing and none":          {pod(), pod(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(0)) }), false},
		"another status":                         {pod(), pod(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }), false},
		"a part of both":                         {&pod().Status, &pod().Status, true},
		"a part that differs":                    {&pod().Status, &corev1.PodStatus{}, false},
		"values without a pointer":               {pod().Status, pod().Status, true},
		"two types that look alike":              {&corev1.Secret{}, &corev1.ConfigMap{}, false},
		"nil and an object":                      {(*corev1.Pod)(nil), &corev1.Pod{}, false},
		"nil pointers":                           {(*corev1.Pod)(nil), (*corev1.Pod)(nil), true},
		"nil interfaces":                         {nil, nil, true},
		"values without a wire format":           {custom(1), custom(1), true},
		"different values without a wire format": {custom(1), custom(2), false},
		"an object with and one without it":      {pod(), custom(1), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("equal: %t, want %t", got, tc.want)
			}
			if got := Equal(tc.b, tc.a); got != tc.want {
				t.Errorf("the other way around, equal: %t, want %t", got, tc.want)
			}
		})
	}
}

// BenchmarkEqual measures the comparison of equal and of different pods.
func BenchmarkEqual(b *testing.B) {
	a, same, other := pod(), pod(), pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	b.Run("equal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !Equal(a, same) {
				b.Fatal("differs")
			}
		}
	})
	b.Run("different", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if Equal(a, other) {
				b.Fatal("equal")
			}
		}
	})
}
