package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/alias"
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

// TestUnsupportedFields: a converted tenant has no fields that would have no effect.
func TestUnsupportedFields(t *testing.T) {
	classes := &tenancyv1alpha1.TenantPolicy{AllowReclaimPolicies: []tenancyv1alpha1.ReclaimPolicy{"Retain"}}
	for name, tc := range map[string]struct {
		provisioner tenancyv1alpha1.ProvisionerType
		policy      *tenancyv1alpha1.TenantPolicy
		deleted     bool
		want        string // empty for none
	}{
		"supported":   {tenancyv1alpha1.ProvisionerConverted, &tenancyv1alpha1.TenantPolicy{AllowNodeName: true}, false, ""},
		"unsupported": {tenancyv1alpha1.ProvisionerConverted, classes, false, "spec.policy.allowReclaimPolicies: Forbidden: converted tenants"},
		"on leave":    {tenancyv1alpha1.ProvisionerConverted, classes, true, ""},
		"hosted":      {tenancyv1alpha1.ProvisionerHosted, classes, false, ""},
		"by default":  {"", classes, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			vc := virtualCluster()
			vc.Spec.Provisioner, vc.Spec.Policy = tc.provisioner, tc.policy
			_, created := validator{}.ValidateCreate(t.Context(), vc)
			if tc.deleted {
				vc.DeletionTimestamp, created = &metav1.Time{}, nil
			}
			_, updated := validator{}.ValidateUpdate(t.Context(), virtualCluster(), vc)
			for _, err := range []error{created, updated} {
				if (err != nil) != (tc.want != "") || err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			}
		})
	}
}

// TestAliases: an alias is rejected that another VirtualCluster has, when it is
// set and not later.
func TestAliases(t *testing.T) {
	named := func(name, uid, alias string) *tenancyv1alpha1.VirtualCluster {
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(uid)}}
		vc.Spec.Alias = alias
		return vc
	}
	scheme := runtime.NewScheme()
	if err := tenancyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&tenancyv1alpha1.VirtualCluster{}, alias.Field, alias.Of).
		WithObjects(named("red", "1", "shop"), named("blue", "2", "")).Build()
	for name, tc := range map[string]struct {
		old, vc *tenancyv1alpha1.VirtualCluster
		taken   bool
	}{
		"a free one":                      {nil, named("green", "3", "store"), false},
		"one that is taken":               {nil, named("green", "3", "shop"), true},
		"none":                            {nil, named("green", "3", ""), false},
		"one that is taken, added":        {named("blue", "2", ""), named("blue", "2", "shop"), true},
		"its own":                         {named("red", "1", "shop"), named("red", "1", "shop"), false},
		"one that a race has given twice": {named("green", "3", "shop"), named("green", "3", "shop"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.old == nil {
				_, err = validator{live}.ValidateCreate(t.Context(), tc.vc)
			} else {
				_, err = validator{live}.ValidateUpdate(t.Context(), tc.old, tc.vc)
			}
			if tc.taken != apierrors.IsInvalid(err) || !tc.taken && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
