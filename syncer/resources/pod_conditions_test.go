package resources

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// withGates adds readiness gates to a pod.
func withGates(kinds ...corev1.PodConditionType) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, kind := range kinds {
			p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: kind})
		}
	}
}

// condition returns a condition that changed at a second; 0 for no time.
func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, second int64) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: status}
	if second > 0 {
		c.LastTransitionTime = metav1.Unix(second, 0)
	}
	return c
}

// gatesSubresource is the subresource for the tenant's gates.
func gatesSubresource(t *testing.T, v kinds.View, super, tenant *corev1.Pod) {
	t.Helper()
	subresource(t, "status").Merge(v, super, tenant)
}

// subresource returns a subresource of pods.
func subresource(t *testing.T, name string) kinds.Subresource[*corev1.Pod] {
	t.Helper()
	for _, sub := range kindOf[kinds.Down[*corev1.Pod]](t, Pod()).Subresources {
		if sub.Name == name {
			return sub
		}
	}
	t.Fatalf("no subresource %s", name)
	return kinds.Subresource[*corev1.Pod]{}
}

func TestPodConditions(t *testing.T) {
	const gate, other = "example.com/gate", "example.com/other"
	yes, no := corev1.ConditionTrue, corev1.ConditionFalse
	type conditions = []corev1.PodCondition
	because := func(c corev1.PodCondition, reason, message string) corev1.PodCondition {
		c.Reason, c.Message = reason, message
		return c
	}
	tests := map[string]struct {
		tenant, super         conditions
		wantTenant, wantSuper conditions
	}{
		"a gate that the tenant's controller opened is synced down": {
			tenant:     conditions{condition(gate, yes, 5)},
			wantTenant: conditions{condition(gate, yes, 5)}, wantSuper: conditions{condition(gate, yes, 5)},
		},
		"a gate that was opened in the super cluster is synced up": {
			super:      conditions{condition(gate, yes, 5)},
			wantTenant: conditions{condition(gate, yes, 5)}, wantSuper: conditions{condition(gate, yes, 5)},
		},
		"of two the later holds: the tenant's": {
			conditions{condition(gate, no, 6)}, conditions{condition(gate, yes, 5)},
			conditions{condition(gate, no, 6)}, conditions{condition(gate, no, 6)},
		},
		"of two the later holds: the super cluster's": {
			conditions{condition(gate, no, 5)}, conditions{condition(gate, yes, 6)},
			conditions{condition(gate, yes, 6)}, conditions{condition(gate, yes, 6)},
		},
		"of two at the same time the tenant's holds": {
			conditions{condition(gate, no, 5)}, conditions{condition(gate, yes, 5)},
			conditions{condition(gate, no, 5)}, conditions{condition(gate, no, 5)},
		},
		"one without a time is the tenant's of now": {
			conditions{condition(gate, no, 0)}, conditions{condition(gate, yes, 5)},
			conditions{condition(gate, no, 0)}, conditions{condition(gate, no, 0)},
		},
		"one without a time in the super cluster does not hold": {
			conditions{condition(gate, no, 5)}, conditions{condition(gate, yes, 0)},
			conditions{condition(gate, no, 5)}, conditions{condition(gate, no, 5)},
		},
		"equal conditions are unchanged, whatever their times": {
			conditions{condition(gate, yes, 5)}, conditions{condition(gate, yes, 9)},
			conditions{condition(gate, yes, 5)}, conditions{condition(gate, yes, 9)},
		},
		"a reason is something else": {
			conditions{because(condition(gate, no, 7), "Draining", "")}, conditions{condition(gate, no, 5)},
			conditions{because(condition(gate, no, 7), "Draining", "")}, conditions{because(condition(gate, no, 7), "Draining", "")},
		},
		"the super cluster's names are no difference": {
			conditions{because(condition(gate, no, 5), "", "waits for default")}, conditions{because(condition(gate, no, 5), "", "waits for "+superDefault)},
			conditions{because(condition(gate, no, 5), "", "waits for default")}, conditions{because(condition(gate, no, 5), "", "waits for "+superDefault)},
		},
		"the super cluster's names are not synced up": {
			conditions{condition(gate, no, 5)}, conditions{because(condition(gate, yes, 6), "", "waits for "+superDefault)},
			conditions{because(condition(gate, yes, 6), "", "waits for default")}, conditions{because(condition(gate, yes, 6), "", "waits for "+superDefault)},
		},
		"a condition that is not a gate is not synced down": {
			tenant: conditions{condition(other, yes, 5)}, wantTenant: conditions{condition(other, yes, 5)},
		},
		"a different condition that is not a gate is the super cluster's": {
			conditions{condition(other, yes, 9)}, conditions{condition(other, no, 5)},
			conditions{condition(other, no, 5)}, conditions{condition(other, no, 5)},
		},
		"other conditions of the tenant's controllers stay": {
			conditions{condition(corev1.DisruptionTarget, yes, 5), condition(other, yes, 5), condition(corev1.PodScheduled, yes, 5)},
			conditions{condition(corev1.PodReady, yes, 5)},
			conditions{
				condition(corev1.PodReady, yes, 5),
				condition(corev1.DisruptionTarget, yes, 5), condition(other, yes, 5), condition(corev1.PodScheduled, yes, 5),
			},
			conditions{condition(corev1.PodReady, yes, 5)},
		},
		"a condition that the kubelet removed is removed": {
			tenant: conditions{condition(corev1.PodResizePending, yes, 5), condition(corev1.PodResizeInProgress, yes, 5), condition(corev1.PodReady, yes, 5)},
		},
		"a tenant cannot open a gate of Kubernetes": {
			conditions{condition(corev1.PodReady, yes, 9), condition(corev1.PodScheduled, no, 9), condition(corev1.DisruptionTarget, yes, 9)},
			conditions{condition(corev1.PodReady, no, 5), condition(corev1.PodScheduled, yes, 5)},
			conditions{condition(corev1.PodReady, no, 5), condition(corev1.PodScheduled, yes, 5), condition(corev1.DisruptionTarget, yes, 9)},
			conditions{condition(corev1.PodReady, no, 5), condition(corev1.PodScheduled, yes, 5)},
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := tenantPod(withGates(gate, corev1.PodReady, corev1.PodScheduled, corev1.DisruptionTarget))
			super := &corev1.Pod{ObjectMeta: superMeta("web")}
			tenant.Status.Conditions, super.Status.Conditions = tt.tenant, tt.super
			gatesSubresource(t, view, super, tenant)
			k.Status(view, tenant, super)
			if diff := cmp.Diff(tt.wantTenant, tenant.Status.Conditions, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the tenant's conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantSuper, super.Status.Conditions, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the copy's conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGatesCountNoGenerationsOfTheOtherSide checks that each side counts its
// own generations.
func TestGatesCountNoGenerationsOfTheOtherSide(t *testing.T) {
	own := condition("gate", corev1.ConditionTrue, 5)
	own.ObservedGeneration = 7
	tenant, super := tenantPod(withGates("gate")), &corev1.Pod{ObjectMeta: superMeta("web")}
	tenant.Status.Conditions = []corev1.PodCondition{own}
	gatesSubresource(t, view, super, tenant)
	if got := super.Status.Conditions[0].ObservedGeneration; got != 0 {
		t.Errorf("a gate that is new in the copy has seen generation %d of it", got)
	}
	super.Status.Conditions[0].Status, super.Status.Conditions[0].ObservedGeneration = corev1.ConditionFalse, 3
	gatesSubresource(t, view, super, tenant)
	if got := super.Status.Conditions[0]; got.Status != corev1.ConditionTrue || got.ObservedGeneration != 3 {
		t.Errorf("the copy's gate is %v, want the tenant's with the generation that was seen of the copy", got)
	}
}

// TestGatesComeToRest checks that for all states of both sides, and all orders
// of concurrent writes, both sides are equal and stable after two more
// reconciles.
func TestGatesComeToRest(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		tenant := tenantPod(withGates("gate0", "gate1", "gate2"))
		super := &corev1.Pod{ObjectMeta: superMeta("web")}
		for range 1 + random.IntN(4) {
			for _, side := range []*corev1.Pod{tenant, super} {
				if random.IntN(2) == 0 {
					side.Status.Conditions = randomConditions(random)
				}
			}
			reconcile(t, k, tenant, super)
		}
		reconcile(t, k, tenant, super)
		wasTenant, wasSuper := tenant.DeepCopy(), super.DeepCopy()
		reconcile(t, k, tenant, super)
		if diff := cmp.Diff(wasSuper, super); diff != "" {
			t.Fatalf("seed %d: the copy is written again (-before +after):\n%s", seed, diff)
		}
		if !k.Same(wasTenant, tenant) {
			t.Fatalf("seed %d: the tenant's is written again (-before +after):\n%s", seed, cmp.Diff(wasTenant, tenant))
		}
		for _, own := range tenant.Status.Conditions {
			there := findCondition(super.Status.Conditions, own.Type)
			if there == nil || !sameCondition(shownCondition(*there), shownCondition(own)) {
				t.Fatalf("seed %d: the tenant has %v, the copy %v", seed, own, there)
			}
		}
	}
}

// reconcile does what a reconcile does: it syncs changes down, and up if they
// matter.
func reconcile(t *testing.T, k kinds.Down[*corev1.Pod], tenant, super *corev1.Pod) {
	t.Helper()
	gatesSubresource(t, view, super, tenant)
	shown := tenant.DeepCopy()
	k.Status(view, shown, super)
	if !k.Same(shown, tenant) {
		tenant.Status = shown.Status
	}
}

func shownCondition(c corev1.PodCondition) corev1.PodCondition {
	c.Message = blue.Text(c.Message, "default")
	return c
}

// randomConditions returns some gates with random status, message and time, or
// none.
func randomConditions(random *rand.Rand) []corev1.PodCondition {
	var conditions []corev1.PodCondition
	for i := range 3 {
		if random.IntN(3) == 0 {
			continue
		}
		c := condition(corev1.PodConditionType(fmt.Sprint("gate", i)),
			[]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}[random.IntN(3)], random.Int64N(4))
		c.Message = []string{"", "default", superDefault}[random.IntN(3)]
		conditions = append(conditions, c)
	}
	return conditions
}
