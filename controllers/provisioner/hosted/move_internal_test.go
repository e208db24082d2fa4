package hosted

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestMoveOf(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: tenancyv1alpha1.ConditionMoved, Status: status, Reason: reason}}
	}
	for name, test := range map[string]struct {
		want, spec string
		status     tenancyv1alpha1.HostedControlPlaneStatus
		reason     string // empty for no move
	}{
		"never asked":  {spec: "a", status: tenancyv1alpha1.HostedControlPlaneStatus{Store: "a"}},
		"not reported": {want: "a", spec: "a", reason: tenancyv1alpha1.ReasonMoved},
		"there": {
			want: "a", spec: "a", status: tenancyv1alpha1.HostedControlPlaneStatus{Store: "a"}, reason: tenancyv1alpha1.ReasonMoved,
		},
		"asked": {
			want: "b", spec: "b", status: tenancyv1alpha1.HostedControlPlaneStatus{Store: "a"}, reason: tenancyv1alpha1.ReasonMoving,
		},
		"asked again": {
			want: "b", spec: "b", reason: tenancyv1alpha1.ReasonMoving, status: tenancyv1alpha1.HostedControlPlaneStatus{
				Store: "a", Conditions: condition(metav1.ConditionTrue, tenancyv1alpha1.ReasonMoved),
			},
		},
		"refused": {
			want: "b", spec: "b", reason: tenancyv1alpha1.ReasonStoreBehind, status: tenancyv1alpha1.HostedControlPlaneStatus{
				Store: "a", Conditions: condition(metav1.ConditionFalse, tenancyv1alpha1.ReasonStoreBehind),
			},
		},
		"not serving yet": {
			want: "b", spec: "b", reason: tenancyv1alpha1.ReasonMoving, status: tenancyv1alpha1.HostedControlPlaneStatus{
				Store: "b", Move: &tenancyv1alpha1.HostedControlPlaneMove{To: "b"},
				Conditions: condition(metav1.ConditionFalse, tenancyv1alpha1.ReasonMoving),
			},
		},
		"no longer asked": {
			spec: "b", reason: tenancyv1alpha1.ReasonMoved, status: tenancyv1alpha1.HostedControlPlaneStatus{
				Store: "b", Conditions: condition(metav1.ConditionTrue, tenancyv1alpha1.ReasonMoved),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			move := moveOf(test.want, &tenancyv1alpha1.HostedControlPlane{
				Spec: tenancyv1alpha1.HostedControlPlaneSpec{Store: test.spec}, Status: test.status,
			})
			if test.reason == "" {
				g.Expect(move).To(BeNil())
				return
			}
			g.Expect(move).NotTo(BeNil())
			g.Expect(move.Reason).To(Equal(test.reason))
			g.Expect(move.Done).To(Equal(test.reason == tenancyv1alpha1.ReasonMoved))
		})
	}
}
