package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listed returns a selector with a label and that many values.
func listed(values int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{"a"}, values)},
	}}
}

// TestSelectorsAreBounded checks that an object with too large selectors is
// rejected, wherever in it they are.
func TestSelectorsAreBounded(t *testing.T) {
	policy := func(spec networkingv1.NetworkPolicySpec) error {
		_, err := pods.desiredNetworkPolicy(view, &networkingv1.NetworkPolicy{ObjectMeta: meta("web"), Spec: spec})
		return err
	}
	pod := func(affinity *corev1.Affinity, spread ...corev1.TopologySpreadConstraint) error {
		_, err := desiredPod(view, &corev1.Pod{ObjectMeta: meta("web"), Spec: corev1.PodSpec{Affinity: affinity, TopologySpreadConstraints: spread}})
		return err
	}
	near := func(s *metav1.LabelSelector) corev1.PodAffinityTerm { return corev1.PodAffinityTerm{LabelSelector: s} }
	nodes := func(values int) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: slices.Repeat([]string{"a"}, values)},
		}}}}
	}
	for name, desire := range map[string]func(values int) error{
		"the pods of a policy": func(values int) error {
			return policy(networkingv1.NetworkPolicySpec{PodSelector: *listed(values)})
		},
		"ingress peers of a policy": func(values int) error {
			return policy(networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{{PodSelector: listed(values)}}},
			}})
		},
		"egress peers of a policy": func(values int) error {
			return policy(networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: listed(values)}}},
			}})
		},
		"the pods of a budget": func(values int) error {
			_, err := desiredBudget(view, &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: listed(values)}})
			return err
		},
		"the neighbours of a pod": func(values int) error {
			return pod(&corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{near(listed(values))},
			}})
		},
		"those that a pod avoids": func(values int) error {
			return pod(&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: near(listed(values))}},
			}})
		},
		"the nodes of a pod": func(values int) error {
			return pod(&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: nodes(values)}})
		},
		"the nodes that a pod prefers": func(values int) error {
			return pod(&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Preference: nodes(values).NodeSelectorTerms[0]}},
			}})
		},
		"how a pod spreads": func(values int) error {
			return pod(nil, corev1.TopologySpreadConstraint{LabelSelector: listed(values)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := desire(maxSelected - 1); err != nil {
				t.Error(err)
			}
			if err := desire(maxSelected); err == nil || !strings.Contains(err.Error(), fmt.Sprint("no more than ", maxSelected)) {
				t.Errorf("one too many: %v", err)
			}
		})
	}
}
