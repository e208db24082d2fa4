package share

import rbacv1 "k8s.io/api/rbac/v1"

// Rules are the rights that sharing takes in the namespace of the leases. Names cannot be told before: each process has a new one.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		Verbs: []string{"create", "get", "list", "update", "delete"},
	}}
}
