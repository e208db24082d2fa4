package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// omitNodeLabels has the copy of a pod of a DaemonSet select its node by name
// alone. The tenant's controller has chosen the node by labels that the tenant
// may have given to it, and that the super cluster's node does not have.
func omitNodeLabels(policy tenancyv1alpha1.TenantPolicy, spec *corev1.PodSpec) {
	if policy.DaemonSets == tenancyv1alpha1.DaemonSetsRun && selectsNodeByName(spec.Affinity) {
		spec.NodeSelector = nil
	}
}

// selectsNodeByName reports whether an affinity requires one node by its name and
// nothing else of it, as the DaemonSet controller writes it.
func selectsNodeByName(affinity *corev1.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 0 || len(terms[0].MatchFields) != 1 {
		return false
	}
	field := terms[0].MatchFields[0]
	return field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1
}
