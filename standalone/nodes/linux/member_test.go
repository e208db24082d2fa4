package linux

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsReady(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, heartbeat time.Time) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, LastHeartbeatTime: metav1.NewTime(heartbeat)}
	}
	before, after := start.Add(-time.Second), start.Add(time.Second)
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
	}{
		"it has reported nothing":                 {nil, false},
		"it has reported something else":          {[]corev1.NodeCondition{condition(corev1.NodeDiskPressure, corev1.ConditionTrue, after)}, false},
		"it is ready":                             {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, after)}, true},
		"it was ready before the last start":      {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, before)}, false},
		"it was ready at the moment of the start": {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, start)}, false},
		"it is not ready":                         {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionFalse, after)}, false},
		"it is not known to be ready":             {[]corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionUnknown, after)}, false},
		"ready is not its first condition": {[]corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, after), condition(corev1.NodeReady, corev1.ConditionTrue, after),
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: c.conditions}}
			if got := isReady(node, start); got != c.want {
				t.Errorf("ready: %v, want %v", got, c.want)
			}
		})
	}
}
