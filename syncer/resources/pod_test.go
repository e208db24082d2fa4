package resources

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPodFlowsBothWays(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	if k.OnDemand || k.Adopt != nil || k.Mirror == nil || k.Status == nil {
		t.Errorf("the kind is %+v; want one that is mirrored and whose status is synced up", k)
	}
}

func TestPodMirror(t *testing.T) {
	m := kindOf[kinds.Down[*corev1.Pod]](t, Pod()).Mirror
	bound := tenantPod(func(p *corev1.Pod) {
		p.Spec.NodeName = "node-1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	})
	tests := map[string]struct {
		change  func(*corev1.Pod)
		started bool
		node    string
	}{
		"bound to a node":         {func(*corev1.Pod) {}, true, "node-1"},
		"on a node that it named": {func(p *corev1.Pod) { p.Status.Conditions = nil }, false, "node-1"},
		"on a node that it named and that has it": {func(p *corev1.Pod) {
			p.Status.Conditions, p.Status.StartTime = nil, new(metav1.Now())
		}, true, "node-1"},
		"unschedulable":            {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, false, "node-1"},
		"scheduled without a node": {func(p *corev1.Pod) { p.Spec.NodeName = "" }, false, ""},
		"just made":                {func(p *corev1.Pod) { *p = *tenantPod() }, false, ""},
		"scheduled, and much beside": {func(p *corev1.Pod) {
			p.Status.Conditions = append([]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}, p.Status.Conditions...)
		}, true, "node-1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := bound.DeepCopy()
			tt.change(pod)
			if got := m.Started(pod); got != tt.started {
				t.Errorf("Started = %t, want %t", got, tt.started)
			}
			if got := m.Node(pod); got != tt.node {
				t.Errorf("Node = %q, want %q", got, tt.node)
			}
		})
	}
	if got := m.GracePeriodSeconds(bound); got != nil {
		t.Errorf("the grace period of a pod that is not being deleted is %d", *got)
	}
	deleted := tenantPod(func(p *corev1.Pod) {
		p.DeletionGracePeriodSeconds, p.Spec.TerminationGracePeriodSeconds = new(int64(5)), new(int64(30))
	})
	if got := m.GracePeriodSeconds(deleted); got == nil || *got != 5 {
		t.Errorf("the grace period of a pod that is being deleted is %v, want 5", got)
	}
}

// TestBoundPod checks that a binding sets the node of a pod and its condition
// PodScheduled.
func TestBoundPod(t *testing.T) {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Waiting"}
	tests := map[string][]corev1.PodCondition{
		"without conditions": nil,
		"unschedulable until now": {
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no node", LastTransitionTime: metav1.Unix(1, 0)},
		},
		"with another condition": {ready},
	}
	m := kindOf[kinds.Down[*corev1.Pod]](t, Pod()).Mirror
	for name, conditions := range tests {
		t.Run(name, func(t *testing.T) {
			pod := tenantPod(func(p *corev1.Pod) { p.Status.Conditions = conditions })
			before := time.Now().Add(-time.Second)
			got := m.Bound(pod, "node-1")
			want := pod.DeepCopy()
			want.Spec.NodeName = "node-1"
			want.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
			if len(conditions) > 0 && conditions[0].Type == corev1.PodReady {
				want.Status.Conditions = append([]corev1.PodCondition{ready}, want.Status.Conditions...)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(corev1.PodCondition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
			if at := got.Status.Conditions[len(got.Status.Conditions)-1].LastTransitionTime; at.Time.Before(before) {
				t.Errorf("it was scheduled at %s, want now", at)
			}
			if !m.Started(got) {
				t.Error("it does not count as started")
			}
		})
	}
	t.Run("bound before", func(t *testing.T) {
		pod := tenantPod(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1, 0)}}
		})
		want := pod.DeepCopy()
		want.Spec.NodeName = "node-1"
		if diff := cmp.Diff(want, m.Bound(pod, "node-1")); diff != "" {
			t.Errorf("pod (-want +got):\n%s", diff)
		}
	})
}
