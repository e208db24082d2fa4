package linux

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// policiesUser is the user that enforces NetworkPolicies on the node.
// Kubernetes has built-in roles for kubelets and kube-proxies only.
const policiesUser = "system:node-policies"

// Allow grants the node's programs the permissions that they need in a cluster.
func Allow(ctx context.Context, cluster *rest.Config) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("create a client for RBAC: %w", err)
	}
	reads := []string{"get", "list", "watch"}
	role := rbacv1ac.ClusterRole(policiesUser).WithRules(
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods", "namespaces").WithVerbs(reads...),
		rbacv1ac.PolicyRule().WithAPIGroups("networking.k8s.io").WithResources("networkpolicies").WithVerbs(reads...),
	)
	binding := rbacv1ac.ClusterRoleBinding(policiesUser).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(policiesUser)).
		WithSubjects(rbacv1ac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.UserKind).WithName(policiesUser))
	options := metav1.ApplyOptions{FieldManager: "vc-standalone", Force: true}
	if _, err := client.RbacV1().ClusterRoles().Apply(ctx, role, options); err != nil {
		return fmt.Errorf("allow the node to read NetworkPolicies: %w", err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Apply(ctx, binding, options); err != nil {
		return fmt.Errorf("allow the node to read NetworkPolicies: %w", err)
	}
	return nil
}
