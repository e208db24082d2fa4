package provider

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestProblems(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	known := problem{reason: tenancyv1alpha1.ReasonKubeconfigInvalid, message: "m", cause: errors.New("c")}
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"one that is known":    {known, tenancyv1alpha1.ReasonKubeconfigInvalid},
		"a bad certificate":    {apierrors.NewUnauthorized("who?"), tenancyv1alpha1.ReasonUnauthorized},
		"a user without right": {apierrors.NewForbidden(pods, "", errors.New("no")), tenancyv1alpha1.ReasonUnauthorized},
		"no answer":            {errors.New("dial tcp 127.0.0.1:51342: refused"), tenancyv1alpha1.ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := errors.AsType[problem](asProblem(tc.err, "https://tenant"))
			if !ok || got.reason != tc.reason {
				t.Fatalf("got %+v, want reason %s", got, tc.reason)
			}
			// A message that changes with each attempt would be a write to the condition for each.
			if strings.Contains(got.message, "51342") {
				t.Errorf("the message depends on the attempt: %s", got.message)
			}
		})
	}
}

func TestOnlyTheConditionIsApplied(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "red", UID: "u"},
		Status:     tenancyv1alpha1.VirtualClusterStatus{Phase: tenancyv1alpha1.PhaseRunning},
	}
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	got := applied(vc, metav1.Condition{
		Type: "Syncing", Status: metav1.ConditionTrue, Reason: "Ready", Message: "m", ObservedGeneration: 7, LastTransitionTime: now,
	})
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
