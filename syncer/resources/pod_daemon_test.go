package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPodOfADaemonSetSelectsItsNodeByName(t *testing.T) {
	byName := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}
	either, not := byName, byName
	either.Values, not.Operator = []string{"node-1", "node-2"}, corev1.NodeSelectorOpNotIn
	byLabel := corev1.NodeSelectorRequirement{Key: "disk", Operator: corev1.NodeSelectorOpExists}
	fields := func(of ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: of}
	}
	run := tenancyv1alpha1.TenantPolicy{DaemonSets: tenancyv1alpha1.DaemonSetsRun}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range map[string]struct {
		policy  tenancyv1alpha1.TenantPolicy
		terms   []corev1.NodeSelectorTerm
		omitted bool
	}{
		"of a DaemonSet":                          {run, []corev1.NodeSelectorTerm{fields(byName)}, true},
		"of a DaemonSet that the policy refuses":  {tenancyv1alpha1.TenantPolicy{}, []corev1.NodeSelectorTerm{fields(byName)}, false},
		"of no affinity":                          {run, nil, false},
		"for either of two nodes":                 {run, []corev1.NodeSelectorTerm{fields(either)}, false},
		"for either of two nodes, in two terms":   {run, []corev1.NodeSelectorTerm{fields(byName), fields(byName)}, false},
		"for all nodes but one":                   {run, []corev1.NodeSelectorTerm{fields(not)}, false},
		"for a node by two fields":                {run, []corev1.NodeSelectorTerm{fields(byName, byName)}, false},
		"for a node by its name and also a label": {run, []corev1.NodeSelectorTerm{{MatchFields: fields(byName).MatchFields, MatchExpressions: []corev1.NodeSelectorRequirement{byLabel}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := tenantPod(func(p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
				if p.Spec.Affinity = nil; tt.terms != nil {
					p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: tt.terms},
					}}
				}
			})
			copied, err := k.Desired(under(tt.policy), tenant)
			if err != nil {
				t.Fatal(err)
			}
			if omitted := copied.Spec.NodeSelector == nil; omitted != tt.omitted {
				t.Errorf("the labels are omitted: %t, want %t", omitted, tt.omitted)
			}
		})
	}
}
