package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// TestPriorityClass checks that the super cluster's default class is not the
// tenant's.
func TestPriorityClass(t *testing.T) {
	want := &schedulingv1.PriorityClass{
		ObjectMeta:       classMeta(nil),
		Value:            7,
		Description:      "text-1",
		PreemptionPolicy: new(corev1.PreemptionPolicy("text-2")),
	}
	testClass(t, PriorityClass(), superClass(&schedulingv1.PriorityClass{}, nil), want,
		func(c *schedulingv1.PriorityClass) { c.Value = 8 },
		func(c *schedulingv1.PriorityClass) { c.PreemptionPolicy = new(corev1.PreemptNever) },
	)
}

func TestPriorityClassesOfTheSystemAreNotShown(t *testing.T) {
	k := kindOf[kinds.Up[*schedulingv1.PriorityClass]](t, PriorityClass())
	for _, name := range []string{"system-node-critical", "system-cluster-critical", "system-other"} {
		if got := k.Desired(view, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}); got != nil {
			t.Errorf("%s is shown as %v", name, got)
		}
	}
}
