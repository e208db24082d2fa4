package provider

import (
	rbacv1 "k8s.io/api/rbac/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Rules returns the RBAC rules of a provider in the super cluster: to watch the
// VirtualClusters with the namespace and the kubeconfig of each, to write its
// condition, and to remember its identity.
func Rules() []rbacv1.PolicyRule {
	tenancy, core, follow := []string{tenancyv1alpha1.GroupVersion.Group}, []string{""}, []string{"list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: tenancy, Resources: []string{"virtualclusters"}, Verbs: follow},
		{APIGroups: tenancy, Resources: []string{"virtualclusters/status"}, Verbs: []string{"patch"}},
		{APIGroups: core, Resources: []string{"namespaces", "secrets"}, Verbs: follow},
		{APIGroups: core, Resources: []string{"namespaces"}, Verbs: []string{"patch"}},
		{APIGroups: core, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	}
}
