package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPodDisruptionBudgetGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*policyv1.PodDisruptionBudget]](t, PodDisruptionBudget())
	number := func(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
	percent := func(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }
	counted := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 10, DesiredHealthy: 7, CurrentHealthy: 9}
	earlier, none := counted, counted
	earlier.ObservedGeneration = 1
	none.ExpectedPods, none.DesiredHealthy = 0, 0
	type spec = policyv1.PodDisruptionBudgetSpec
	tests := map[string]struct {
		tenant spec
		status policyv1.PodDisruptionBudgetStatus
		want   spec
	}{
		"a number of pods is what it is":             {spec{MinAvailable: number(2)}, counted, spec{MinAvailable: number(2)}},
		"maxUnavailable becomes a number":            {spec{MaxUnavailable: number(3)}, counted, spec{MinAvailable: number(7)}},
		"maxUnavailable in percent becomes a number": {spec{MaxUnavailable: percent("30%")}, counted, spec{MinAvailable: number(7)}},
		"minAvailable in percent becomes a number":   {spec{MinAvailable: percent("70%")}, counted, spec{MinAvailable: number(7)}},
		"not before it is counted":                   {spec{MaxUnavailable: number(3)}, earlier, spec{MaxUnavailable: number(3)}},
		"nor if the pods have no owner with a scale": {spec{MinAvailable: percent("70%")}, none, spec{MinAvailable: percent("70%")}},
		"an empty budget":                            {spec{}, counted, spec{}},
		"other fields": {
			spec{Selector: byLabels("app", "web"), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow), MinAvailable: number(1)}, counted,
			spec{Selector: byLabels("app", "web"), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow), MinAvailable: number(1)},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := &policyv1.PodDisruptionBudget{ObjectMeta: meta("web"), Spec: tt.tenant, Status: tt.status}
			tenant.Generation = 2
			desired, err := k.Desired(view, tenant)
			if diff := cmp.Diff(&policyv1.PodDisruptionBudget{Spec: tt.want}, desired); err != nil || diff != "" {
				t.Fatalf("error %v, copy (-want +got):\n%s", err, diff)
			}
			super := &policyv1.PodDisruptionBudget{ObjectMeta: superMeta("web"), Status: tt.status}
			super.Spec.MaxUnavailable = number(5)
			want := &policyv1.PodDisruptionBudget{ObjectMeta: superMeta("web"), Spec: tt.want, Status: tt.status}
			k.Merge(super, desired)
			if diff := cmp.Diff(want, super); diff != "" {
				t.Errorf("changed copy (-want +got):\n%s", diff)
			}
		})
	}
	if k.Status != nil {
		t.Error("the status is synced up, which the tenant's controller writes")
	}
}
