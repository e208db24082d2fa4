package resources

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// requirement returns a requirement of a label selector.
func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func TestPodLooksForOthersOfTheTenantAlone(t *testing.T) {
	ofBlue := func(more map[string]string) *metav1.LabelSelector {
		labels := map[string]string{"tenancy.x-k8s.io/vcname": "blue", "tenancy.x-k8s.io/vcnamespace": "team"}
		maps.Copy(labels, more)
		return &metav1.LabelSelector{MatchLabels: labels}
	}
	web := func(expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: expressions}
	}
	hash := requirement("hash", metav1.LabelSelectorOpIn, "1")
	notTier := requirement("tier", metav1.LabelSelectorOpNotIn, "front")
	tests := map[string]struct{ term, want corev1.PodAffinityTerm }{
		"its own namespace": {
			corev1.PodAffinityTerm{LabelSelector: web(), TopologyKey: "zone"}, corev1.PodAffinityTerm{LabelSelector: web(), TopologyKey: "zone"},
		},
		"namespaces by name": {
			corev1.PodAffinityTerm{Namespaces: []string{"default", "shop"}},
			corev1.PodAffinityTerm{Namespaces: []string{superDefault, "team-71a1c3-blue-shop"}},
		},
		"all namespaces": {
			corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}, corev1.PodAffinityTerm{NamespaceSelector: ofBlue(nil)},
		},
		"some namespaces, and one by name": {
			corev1.PodAffinityTerm{
				Namespaces: []string{"default"}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			},
			corev1.PodAffinityTerm{Namespaces: []string{superDefault}, NamespaceSelector: ofBlue(map[string]string{"labels.tenancy.x-k8s.io/env": "prod"})},
		},
		"keys that the tenant's apiserver has resolved": {
			corev1.PodAffinityTerm{LabelSelector: web(hash, notTier), MatchLabelKeys: []string{"hash"}, MismatchLabelKeys: []string{"tier"}},
			corev1.PodAffinityTerm{LabelSelector: web(hash, notTier)},
		},
		"keys that it has not, as older ones do not": {
			corev1.PodAffinityTerm{LabelSelector: web(), MatchLabelKeys: []string{"hash"}, MismatchLabelKeys: []string{"tier"}},
			corev1.PodAffinityTerm{LabelSelector: web(hash, notTier)},
		},
		"keys of labels that the pod does not have": {
			corev1.PodAffinityTerm{LabelSelector: web(), MatchLabelKeys: []string{"none"}}, corev1.PodAffinityTerm{LabelSelector: web()},
		},
		"keys of no selector": {
			corev1.PodAffinityTerm{MatchLabelKeys: []string{"hash"}}, corev1.PodAffinityTerm{},
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := tenantPod(withTerm(tt.term), func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web", "hash": "1", "tier": "front"} })
			want := tenantPod(withTerm(tt.want))
			got, err := k.Desired(view, tenant)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Spec.Affinity, got.Spec.Affinity, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
		})
	}
}

// withTerm adds an affinity term to a pod in each of the four places.
func withTerm(term corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		required := []corev1.PodAffinityTerm{*term.DeepCopy()}
		preferred := []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: *term.DeepCopy()}}
		p.Spec.Affinity = (&corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{},
			PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred,
			},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred,
			},
		}).DeepCopy()
	}
}

func TestSpreadOfAPod(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	hash := requirement("hash", metav1.LabelSelectorOpIn, "1")
	for _, selector := range []*metav1.LabelSelector{{}, {MatchExpressions: []metav1.LabelSelectorRequirement{hash}}} {
		tenant := tenantPod(func(p *corev1.Pod) {
			p.Labels = map[string]string{"hash": "1"}
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: "zone", LabelSelector: selector, MatchLabelKeys: []string{"hash", "none"}}, {MaxSkew: 2},
			}
		})
		got, err := k.Desired(view, tenant)
		if err != nil {
			t.Fatal(err)
		}
		want := []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{hash}}}, {MaxSkew: 2},
		}
		if diff := cmp.Diff(want, got.Spec.TopologySpreadConstraints); diff != "" {
			t.Errorf("constraints (-want +got):\n%s", diff)
		}
	}
}
