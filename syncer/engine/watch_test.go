package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"the status":                            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"what says who":                         {func(p *corev1.Pod) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "syncer"}} }, true},
		"the spec":                              {func(p *corev1.Pod) { p.Generation++ }, false},
		"an unknown spec":                       {func(p *corev1.Pod) { p.Generation = 0 }, false},
		"a label":                               {func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }, false},
		"an annotation":                         {func(p *corev1.Pod) { p.Annotations = map[string]string{"note": "x"} }, false},
		"a finalizer":                           {func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} }, false},
		"its deletion":                          {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"everything: it is another of the name": {func(p *corev1.Pod) { p.UID = "2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			was := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
			now := was.DeepCopy()
			tt.change(now)
			if got := onlyStatus(was, now); got != tt.want {
				t.Errorf("onlyStatus is %t, want %t", got, tt.want)
			}
		})
	}
}
