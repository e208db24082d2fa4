package command

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestIsMoved(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       bool
	}{
		"not reported":           {nil, false},
		"about an earlier store": {[]metav1.Condition{{Type: "Moved", Status: metav1.ConditionTrue, ObservedGeneration: 2}}, false},
		"on its way":             {[]metav1.Condition{{Type: "Moved", Status: metav1.ConditionFalse, ObservedGeneration: 3}}, false},
		"there":                  {[]metav1.Condition{{Type: "Moved", Status: metav1.ConditionTrue, ObservedGeneration: 3}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			vc := &tenancyv1alpha1.VirtualCluster{}
			vc.Generation, vc.Status.Conditions = 3, test.conditions
			NewWithT(t).Expect(isMoved(vc)).To(Equal(test.want))
		})
	}
}
