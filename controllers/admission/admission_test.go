package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func virtualCluster(expressions ...string) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Name: "red"}}
	vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{}
	for _, e := range expressions {
		vc.Spec.Quota.Rules = append(vc.Spec.Quota.Rules, tenancyv1alpha1.QuotaRule{Expression: e})
	}
	return vc
}

func TestRulesHaveToCompile(t *testing.T) {
	const second = `VirtualCluster.tenancy.x-k8s.io "red" is invalid: spec.quota.rules[1].expression: Invalid value: at 1:12: Syntax error`
	deleted := virtualCluster("true &&")
	deleted.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		vc             *tenancyv1alpha1.VirtualCluster
		create, update string
	}{
		"no quota":  {&tenancyv1alpha1.VirtualCluster{}, "", ""},
		"no rules":  {virtualCluster(), "", ""},
		"good":      {virtualCluster("true", "tenant.name == 'red' && used['pods'].isLessThan(hard['pods'])"), "", ""},
		"bad":       {virtualCluster("true", "tenant.name"+"="), second, second},
		"on leave":  {deleted, "Syntax error", ""},
		"not bools": {virtualCluster("tenant.name"), "it gives string and not bool", "it gives string and not bool"},
	} {
		t.Run(name, func(t *testing.T) {
			_, created := validator{}.ValidateCreate(t.Context(), tc.vc)
			_, updated := validator{}.ValidateUpdate(t.Context(), virtualCluster(), tc.vc)
			for _, got := range []struct {
				err  error
				want string
			}{{created, tc.create}, {updated, tc.update}} {
				if got.want == "" && got.err != nil || got.want != "" && (got.err == nil || !strings.Contains(got.err.Error(), got.want)) {
					t.Errorf("got %v, want %q", got.err, got.want)
				}
			}
			if _, err := (validator{}).ValidateDelete(t.Context(), tc.vc); err != nil {
				t.Errorf("a deletion: %v", err)
			}
		})
	}
}
