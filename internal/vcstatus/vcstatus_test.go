package vcstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestOnlyTheConditionIsApplied(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "red", UID: "u"},
		Status:     tenancyv1alpha1.VirtualClusterStatus{Phase: tenancyv1alpha1.PhaseRunning},
	}
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	status, err := conditions(vc, []*metav1.Condition{{
		Type: "Syncing", Status: metav1.ConditionTrue, Reason: "Ready", Message: "m", ObservedGeneration: 7, LastTransitionTime: now,
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := partOf(vc, status)
	want := map[string]any{
		"apiVersion": "tenancy.x-k8s.io/v1alpha1",
		"kind":       "VirtualCluster",
		"metadata":   map[string]any{"namespace": "team", "name": "red", "uid": "u"},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Syncing", "status": "True", "reason": "Ready", "message": "m",
			"observedGeneration": int64(7), "lastTransitionTime": "2026-01-02T03:04:05Z",
		}}},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Error(diff)
	}
}

func TestMerge(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	syncing := metav1.Condition{Type: "Syncing", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: before}
	other := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: before}
	same, changed := syncing, syncing
	same.LastTransitionTime = metav1.Time{}
	changed.Message, changed.LastTransitionTime = "m", metav1.Time{}
	kept := changed
	kept.LastTransitionTime = before
	for name, tc := range map[string]struct {
		has    []metav1.Condition
		wanted map[string]*metav1.Condition
		merged []*metav1.Condition
		differ bool
	}{
		"up to date":                {[]metav1.Condition{other, syncing}, map[string]*metav1.Condition{"Syncing": &same}, []*metav1.Condition{&syncing}, false},
		"another message":           {[]metav1.Condition{other, syncing}, map[string]*metav1.Condition{"Syncing": &changed}, []*metav1.Condition{&kept}, true},
		"new":                       {[]metav1.Condition{other}, map[string]*metav1.Condition{"Syncing": &syncing}, []*metav1.Condition{&syncing}, true},
		"not wanted":                {[]metav1.Condition{syncing, other}, map[string]*metav1.Condition{"Syncing": nil}, nil, true},
		"not wanted, and not there": {[]metav1.Condition{other}, map[string]*metav1.Condition{"Syncing": nil}, nil, false},
		"one of two differs": {
			[]metav1.Condition{syncing, other}, map[string]*metav1.Condition{"Syncing": &same, "Ready": nil}, []*metav1.Condition{&syncing}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			vc := &tenancyv1alpha1.VirtualCluster{Status: tenancyv1alpha1.VirtualClusterStatus{Conditions: tc.has}}
			was := vc.DeepCopy()
			merged, differ := Merge(vc, tc.wanted)
			if diff := cmp.Diff(tc.merged, merged); diff != "" || differ != tc.differ {
				t.Errorf("differs: %t, want %t (-want +got):\n%s", differ, tc.differ, diff)
			}
			if diff := cmp.Diff(was, vc); diff != "" {
				t.Errorf("the VirtualCluster, which the cache shares, is changed:\n%s", diff)
			}
		})
	}
}
