package component

import rbacv1 "k8s.io/api/rbac/v1"

const create = "create"

// MetricsRules are the rights that it takes to ask the super cluster who may
// see the metrics.
func MetricsRules() []rbacv1.PolicyRule {
	ask := []string{create}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: ask},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: ask},
	}
}

// LeaderRules are the rights that leader election takes in the namespace of the
// Lease, which has the program's name.
func LeaderRules(name string) []rbacv1.PolicyRule {
	leases, groups := []string{"leases"}, []string{"coordination.k8s.io"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{create, "patch"}},
		{APIGroups: groups, Resources: leases, Verbs: []string{create}},
		{APIGroups: groups, Resources: leases, ResourceNames: []string{name}, Verbs: []string{"get", "update"}},
	}
}
