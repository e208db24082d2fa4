package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// The prefixes of the keys of roles and bindings below that of a tenant.
const (
	clusterRolesKey        = "/clusterroles/"
	clusterRoleBindingsKey = "/clusterrolebindings/"
	rolesKey               = "/roles/"
	roleBindingsKey        = "/rolebindings/"
)

// reconcileRole creates a role or binding that a tenant has deleted, and adds
// what it has removed.
type reconcileRole func(kubernetes.Interface) error

// bootstrapRoles returns the roles and bindings that the hook of RBAC creates and
// reconciles at each start, by the prefix of their keys and the rest of them.
func bootstrapRoles() map[string]map[string]reconcileRole {
	found := map[string]map[string]reconcileRole{clusterRolesKey: {}, clusterRoleBindingsKey: {}, rolesKey: {}, roleBindingsKey: {}}
	for _, role := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		found[clusterRolesKey][role.Name] = func(client kubernetes.Interface) error {
			to := reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()}
			return reconcileRules(reconciliation.ClusterRoleRuleOwner{ClusterRole: role.DeepCopy()}, to)
		}
	}
	for _, binding := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		found[clusterRoleBindingsKey][binding.Name] = func(client kubernetes.Interface) error {
			to := reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()}
			return reconcileSubjects(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding.DeepCopy()}, to)
		}
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			found[rolesKey][namespace+"/"+role.Name] = func(client kubernetes.Interface) error {
				to := reconciliation.RoleModifier{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()}
				return reconcileRules(reconciliation.RoleRuleOwner{Role: role.DeepCopy()}, to)
			}
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			found[roleBindingsKey][namespace+"/"+binding.Name] = func(client kubernetes.Interface) error {
				to := reconciliation.RoleBindingClientAdapter{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()}
				return reconcileSubjects(reconciliation.RoleBindingAdapter{RoleBinding: binding.DeepCopy()}, to)
			}
		}
	}
	return found
}

// reconcileRules reconciles a role as upstream's hook does: rules that the tenant
// has added stay, and an annotation of upstream protects all of them.
func reconcileRules(role reconciliation.RuleOwner, to reconciliation.RuleOwnerModifier) error {
	_, err := (&reconciliation.ReconcileRoleOptions{Role: role, Client: to, Confirm: true}).Run()
	return err
}

// reconcileSubjects does the same with a binding.
func reconcileSubjects(binding reconciliation.RoleBinding, to reconciliation.RoleBindingModifier) error {
	_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: binding, Client: to, Confirm: true}).Run()
	return err
}

// restoreRoles reconciles the roles and bindings of every cluster that a tenant
// has deleted, or written since a revision: as with upstream, when its apiserver
// starts. It reads the values of no others, and reports whether there were any.
func (c *Chain) restoreRoles(ctx context.Context, t *Tenant, since int64) (restored bool, err error) {
	for prefix, roles := range c.roles {
		response, err := c.opts.Store.KV.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return restored, fmt.Errorf("list the keys below %s: %w", prefix, err)
		}
		written := make(map[string]int64, len(response.Kvs))
		for _, kv := range response.Kvs {
			written[string(kv.Key)] = kv.ModRevision
		}
		for name, reconcile := range roles {
			if at := written[prefix+name]; at > 0 && at <= since {
				continue
			}
			if err := reconcile(t.client); err != nil {
				return restored, fmt.Errorf("restore %s%s: %w", prefix, name, err)
			}
			restored = true
		}
	}
	return restored, nil
}
