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
	status, err := conditions(vc, []*metav1.Condition{nil, {
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
