package share

import rbacv1 "k8s.io/api/rbac/v1"

// Rules are the RBAC rules for sharing, in the namespace of the leases. They
// cannot name leases, because each process has a new name.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		Verbs: []string{"create", "get", "list", "update", "delete"},
	}}
}
