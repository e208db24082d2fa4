package kinds

// RBACGroup is the API group of roles and bindings.
const RBACGroup = "rbac.authorization.k8s.io"

// rbac returns the kinds of roles and bindings.
func rbac() []Kind {
	references := means(Reference, "subjects[*]", "roleRef")
	return []Kind{
		{Group: RBACGroup, Resource: "roles", Kind: "Role", Class: Shelved, Stored: shelf, InNamespaces: true},
		{
			Group: RBACGroup, Resource: "rolebindings", Kind: "RoleBinding", Class: Shelved, Stored: shelf, InNamespaces: true,
			Rules: references,
		},
		{Group: RBACGroup, Resource: "clusterroles", Kind: "ClusterRole", Class: Shelved, Stored: rootShelf},
		{
			Group: RBACGroup, Resource: "clusterrolebindings", Kind: "ClusterRoleBinding", Class: Shelved, Stored: rootShelf,
			Rules: references,
		},
	}
}
