package kinds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestRules(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"list", "watch", "get", "create", "patch", "delete"}
	for name, tc := range map[string]struct {
		kind kinds.Flow
		want []rbacv1.PolicyRule
	}{
		"down": {
			kinds.Down[*corev1.ConfigMap]{Object: &corev1.ConfigMap{}},
			[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: all}},
		},
		"down, of a group": {
			kinds.Down[*networkingv1.NetworkPolicy]{Object: &networkingv1.NetworkPolicy{}},
			[]rbacv1.PolicyRule{{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: all}},
		},
		"down, through a subresource too": {
			kinds.Down[*corev1.Pod]{Object: &corev1.Pod{}, Subresources: []kinds.Subresource[*corev1.Pod]{{Name: "resize"}}},
			[]rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: all},
				{APIGroups: []string{""}, Resources: []string{"pods/resize"}, Verbs: []string{"patch"}},
			},
		},
		"up": {
			kinds.Up[*networkingv1.IngressClass]{Object: &networkingv1.IngressClass{}},
			[]rbacv1.PolicyRule{
				{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingressclasses"}, Verbs: []string{"list", "watch"}},
			},
		},
		"up, with something going back": {
			kinds.Up[*corev1.PersistentVolume]{
				Object: &corev1.PersistentVolume{}, Back: func(kinds.View, *corev1.PersistentVolume, *corev1.PersistentVolume) {},
			},
			[]rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"list", "watch", "patch"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			definitions := rbacv1.PolicyRule{
				APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"},
			}
			got, err := kinds.Rules([]kinds.Flow{tc.kind}, scheme)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]rbacv1.PolicyRule{definitions, kinds.AskRights}, tc.want...), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRulesNeedToKnowTheKind(t *testing.T) {
	if rules, err := kinds.Rules(nil, runtime.NewScheme()); err == nil {
		t.Errorf("got %v of a scheme without kinds, want an error", rules)
	}
}
