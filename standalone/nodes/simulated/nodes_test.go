package simulated

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

func TestStagesOfPods(t *testing.T) {
	all, err := stages()
	if err != nil {
		t.Fatal(err)
	}
	pods, err := lifecycle.NewLifecycle(all[internalversion.StageResourceRef{APIGroup: "v1", Kind: "Pod"}])
	if err != nil {
		t.Fatal(err)
	}
	running := corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	deleted := func(secondsLeft int64) metav1.ObjectMeta {
		return metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, DeletionGracePeriodSeconds: &secondsLeft}
	}
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"a pod with a node":          {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, "pod-ready"},
		"a pod that runs":            {corev1.Pod{Status: running}, ""},
		"a pod that is deleted":      {corev1.Pod{ObjectMeta: deleted(30), Status: running}, "pod-delete"},
		"a pod whose time has ended": {corev1.Pod{ObjectMeta: deleted(0), Status: running}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pods.Match(t.Context(), &lifecycle.Event{Data: &tt.pod})
			if err != nil {
				t.Fatal(err)
			}
			if got == nil && tt.want != "" || got != nil && got.Name() != tt.want {
				t.Errorf("the next stage is %v, want %q", got, tt.want)
			}
		})
	}
}

func TestLeft(t *testing.T) {
	now := time.Unix(1000, 0)
	pod := func(node string, deleted time.Duration, grace int64, finalizers ...string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				DeletionTimestamp: &metav1.Time{Time: now.Add(-deleted)}, DeletionGracePeriodSeconds: &grace, Finalizers: finalizers,
			},
			Spec: corev1.PodSpec{NodeName: node},
		}
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"its grace period is over":      {pod("node-1", time.Minute, 0), true},
		"its grace period is just over": {pod("node-1", time.Second, 0), false},
		"it has time":                   {pod("node-1", time.Minute, 30), false},
		"a finalizer holds it":          {pod("node-1", time.Minute, 0, "example.com/held"), false},
		"it is on no node":              {pod("", time.Minute, 0), false},
		"it is on another's node":       {pod("worker", time.Minute, 0), false},
		"it is not being deleted":       {&corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := left(tt.pod, now); got != tt.want {
				t.Errorf("left is %v, want %v", got, tt.want)
			}
		})
	}
}
