package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// bootstrapRoles returns the names of the roles and bindings that the hook of
// RBAC creates, by the prefix of their keys below that of a tenant.
func bootstrapRoles() map[string][]string {
	found := map[string][]string{}
	for _, role := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		found["/clusterroles/"] = append(found["/clusterroles/"], role.Name)
	}
	for _, binding := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		found["/clusterrolebindings/"] = append(found["/clusterrolebindings/"], binding.Name)
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for i := range roles {
			found["/roles/"] = append(found["/roles/"], namespace+"/"+roles[i].Name)
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for i := range bindings {
			found["/rolebindings/"] = append(found["/rolebindings/"], namespace+"/"+bindings[i].Name)
		}
	}
	return found
}

// restoreRoles creates the roles and bindings of every cluster that a tenant has
// deleted: as with upstream, when its apiserver starts.
func (c *Chain) restoreRoles(ctx context.Context, t *Tenant) error {
	if t.upkeep.isBegun() {
		return nil
	}
	if lacks, err := c.lacksRoles(ctx); err != nil || !lacks {
		return err
	}
	return runHooks(ctx, t)
}

// lacksRoles reports whether a tenant has deleted roles or bindings of every
// cluster. It reads no values.
func (c *Chain) lacksRoles(ctx context.Context) (bool, error) {
	for prefix, names := range c.roles {
		response, err := c.opts.Store.KV.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return false, fmt.Errorf("list the keys below %s: %w", prefix, err)
		}
		stored := make(map[string]bool, len(response.Kvs))
		for _, kv := range response.Kvs {
			stored[string(kv.Key)] = true
		}
		for _, name := range names {
			if !stored[prefix+name] {
				return true, nil
			}
		}
	}
	return false, nil
}
