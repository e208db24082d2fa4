package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestQuotaEnforced(t *testing.T) {
	type (
		limits  = tenancyv1alpha1.Limits
		classes = []tenancyv1alpha1.PriorityClassQuota
		rules   = []tenancyv1alpha1.QuotaRule
	)
	hard := limits{"pods": "1"}
	asked := sets.New[string]
	tests := map[string]struct {
		quota      *tenancyv1alpha1.QuotaSpec
		validators sets.Set[string]
		status     metav1.ConditionStatus // empty for no condition
		message    string
	}{
		"no quota":                          {nil, nil, "", ""},
		"an empty quota":                    {&tenancyv1alpha1.QuotaSpec{}, nil, "", ""},
		"validation is disabled":            {&tenancyv1alpha1.QuotaSpec{Hard: hard}, nil, "False", "vc-syncer does not enforce spec.quota, since it runs without --enable-quota-validation"},
		"rules, and validation is disabled": {&tenancyv1alpha1.QuotaSpec{Rules: make(rules, 1)}, nil, "False", "vc-syncer does not enforce spec.quota, since it runs without --enable-quota-validation"},
		"all are enabled":                   {&tenancyv1alpha1.QuotaSpec{Hard: hard, Rules: make(rules, 1)}, asked("quota", "rules"), "True", "vc-syncer enforces spec.quota"},
		"the other one is not needed":       {&tenancyv1alpha1.QuotaSpec{Hard: hard}, asked("quota"), "True", "vc-syncer enforces spec.quota"},
		"rules are left out": {
			&tenancyv1alpha1.QuotaSpec{Hard: hard, Rules: make(rules, 1)}, asked("quota"), "False",
			"vc-syncer does not enforce spec.quota.rules, since its flag --quota-validators leaves out rules",
		},
		"a program's own alone": {
			&tenancyv1alpha1.QuotaSpec{PriorityClasses: make(classes, 1), Rules: make(rules, 1)}, asked("by-name"), "False",
			"vc-syncer does not enforce spec.quota.priorityClasses, since its flag --quota-validators leaves out quota; " +
				"nor spec.quota.rules, since its flag --quota-validators leaves out rules",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			vc.Spec.Quota = tt.quota
			var want *metav1.Condition
			if tt.status != "" {
				want = &metav1.Condition{Type: "QuotaEnforced", Status: tt.status, Reason: "ValidationDisabled", Message: tt.message, ObservedGeneration: 3}
			}
			if tt.status == metav1.ConditionTrue {
				want.Reason = "Enforced"
			}
			if diff := cmp.Diff(want, quotaEnforced(vc, tt.validators, false)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuotaOfConvertedTenants(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted
	vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Hard: tenancyv1alpha1.Limits{"pods": "1"}}
	for webhook, want := range map[bool]metav1.ConditionStatus{false: metav1.ConditionFalse, true: metav1.ConditionTrue} {
		if got := quotaEnforced(vc, sets.New("quota"), webhook); got.Status != want {
			t.Errorf("with a webhook %v: %+v", webhook, got)
		}
	}
}
