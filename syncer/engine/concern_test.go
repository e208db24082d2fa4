package engine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// podKind is a kind of pods whose status is their phase and message.
func podKind() *kinds.Kind {
	return kinds.Down[*corev1.Pod]{
		Name: "Pod", Object: &corev1.Pod{},
		Same: func(a, b *corev1.Pod) bool {
			return a.Status.Phase == b.Status.Phase && a.Status.Message == b.Status.Message
		},
		Mirror: &kinds.Mirror[*corev1.Pod]{
			Started: func(*corev1.Pod) bool { return true },
			Node:    func(p *corev1.Pod) string { return p.Spec.NodeName },
			Ended: func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
			},
			GracePeriodSeconds: func(*corev1.Pod) *int64 { return nil },
			Bound:              func(p *corev1.Pod, _ string) *corev1.Pod { return p },
		},
	}.Erase()
}

// plainKind is a kind without a status that is synced up.
func plainKind() *kinds.Kind {
	return kinds.Down[*corev1.ConfigMap]{Name: "ConfigMap", Object: &corev1.ConfigMap{}}.Erase()
}

func podWith(phase corev1.PodPhase, change ...func(*corev1.Pod)) client.Object {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "key-shop", Name: "web", Annotations: map[string]string{names.Cluster: "key"}},
		Status:     corev1.PodStatus{Phase: phase},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func deleting(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)} }

func TestConcernOf(t *testing.T) {
	const yes, no, failed = corev1.PodRunning, corev1.PodPending, corev1.PodFailed
	message := func(p *corev1.Pod) { p.Status.Message = "restarted" }
	label := func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }
	for name, tc := range map[string]struct {
		was, now client.Object
		want     concern
	}{
		"a pod failed":     {podWith(yes), podWith(failed), ended},
		"a pod had failed": {podWith(failed), podWith(failed, label), unconcerned},
		"a pod that failed is new": {
			nil, podWith(failed), ended,
		},
		"a pod is being deleted": {podWith(yes), podWith(yes, deleting), ended},
		"a pod is still deleted": {podWith(yes, deleting), podWith(yes, deleting, label), unconcerned},
		"a pod is gone":          {podWith(yes), nil, ended},
		"a pod runs":             {podWith(no), podWith(yes), statusChanged},
		"a pod is seen":          {nil, podWith(yes), statusChanged},
		"a container restarted":  {podWith(yes), podWith(yes, message), statusChanged},
		"a label changed":        {podWith(yes), podWith(yes, label), unconcerned},
		"a heartbeat":            {podWith(yes), podWith(yes), unconcerned},
	} {
		t.Run(name, func(t *testing.T) {
			if got := concernOf(podKind(), tc.was, tc.now); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	config := &corev1.ConfigMap{}
	if got := concernOf(plainKind(), nil, config); got != unconcerned {
		t.Errorf("a new copy of a kind without a status: %d", got)
	}
	if got := concernOf(plainKind(), config, config); got != unconcerned {
		t.Errorf("a changed copy of a kind without a status: %d", got)
	}
	if got := concernOf(plainKind(), config, nil); got != statusChanged {
		t.Errorf("a copy that is gone: %d", got)
	}
}

// TestTell: tenants that are not engaged are notified of every change, and engaged
// ones of ends, with the time of a change that is seen late.
func TestTell(t *testing.T) {
	type told struct {
		tenant string
		urgent bool
	}
	var all []told
	var at time.Time
	e := &superEvents{shared: &shared{changed: func(tenant string, when time.Time, urgent bool) {
		all, at = append(all, told{tenant, urgent}), when
	}}}
	expect := func(what string, want ...told) {
		t.Helper()
		if len(all) != len(want) || len(want) == 1 && all[0] != want[0] {
			t.Errorf("%s: told %v, want %v", what, all, want)
		}
		all = nil
	}
	running, failed := podWith(corev1.PodRunning), podWith(corev1.PodFailed)
	e.tell(podKind(), running, failed, false)
	expect("the end of a pod", told{"key", true})
	if time.Since(at) > time.Minute {
		t.Errorf("it ended at %s", at)
	}
	e.tell(podKind(), running, failed, true)
	expect("the end of a pod of an engaged tenant", told{"key", true})
	e.tell(podKind(), podWith(corev1.PodPending), running, false)
	expect("a status", told{"key", false})
	e.tell(podKind(), podWith(corev1.PodPending), running, true)
	expect("a status of an engaged tenant")
	e.tell(podKind(), running, running, false)
	expect("no change")
	e.tell(podKind(), running, nil, false)
	expect("a pod that is gone", told{"key", true})
	e.tell(podKind(), nil, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}, false)
	expect("a pod of no tenant")

	finished := metav1.Unix(2e9, 0)
	e.tell(podKind(), nil, podWith(corev1.PodFailed, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{LastTransitionTime: metav1.Unix(1e9, 0)}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(15e8, 0)}}},
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: finished}}},
		}
	}), false)
	expect("a pod that failed before the start", told{"key", true})
	if !at.Equal(finished.Time) {
		t.Errorf("it ended at %s", at)
	}
	if got := lastChange(podWith(corev1.PodRunning, deleting)); !got.Equal(time.Unix(1e9, 0)) {
		t.Errorf("a pod that is being deleted changed at %s", got)
	}
	if got := lastChange(&corev1.ConfigMap{}); !got.IsZero() {
		t.Errorf("a ConfigMap changed at %s", got)
	}

	none := &superEvents{shared: &shared{}}
	none.tell(podKind(), running, failed, false) // has no receiver
}
