package kinds

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Rules returns the RBAC rules that an engine needs for these kinds in the
// super cluster: only for requests that it sends. Those for custom resources
// are not known before a tenant asks for one.
func Rules(flows []Flow, scheme *runtime.Scheme) ([]rbacv1.PolicyRule, error) {
	definitions, err := right(scheme, &apiextensionsv1.CustomResourceDefinition{}, "", "get", "list", "watch")
	if err != nil {
		return nil, err
	}
	rules := []rbacv1.PolicyRule{definitions, AskRights}
	for _, k := range flows {
		own, err := k.Erase().rules(scheme)
		if err != nil {
			return nil, err
		}
		rules = append(rules, own...)
	}
	return rules, nil
}

// rules returns the RBAC rules for syncing one kind.
func (k *Kind) rules(scheme *runtime.Scheme) ([]rbacv1.PolicyRule, error) {
	own, err := right(scheme, k.Object, "", k.Verbs()...)
	if err != nil || k.Down == nil {
		return []rbacv1.PolicyRule{own}, err
	}
	rules := []rbacv1.PolicyRule{own}
	for _, sub := range k.Down.Subresources {
		patch, err := right(scheme, k.Object, sub.Name, "patch")
		if err != nil {
			return nil, err
		}
		rules = append(rules, patch)
	}
	return rules, nil
}

// Verbs returns the verbs that the syncer uses on objects of a kind in the
// super cluster. Kinds that are synced up are only read from a cache.
func (k *Kind) Verbs() []string {
	follow := []string{"list", "watch"}
	switch {
	case k.Down != nil:
		return append(follow, "get", "create", "patch", "delete")
	case k.Up.Back != nil:
		return append(follow, "patch")
	}
	return follow
}

// right returns the RBAC rule for verbs on one kind, or on a subresource of it.
func right(scheme *runtime.Scheme, obj client.Object, subresource string, verbs ...string) (rbacv1.PolicyRule, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return rbacv1.PolicyRule{}, fmt.Errorf("find the resource of %T: %w", obj, err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	resource := plural.Resource
	if subresource != "" {
		resource += "/" + subresource
	}
	return rbacv1.PolicyRule{APIGroups: []string{gvk.Group}, Resources: []string{resource}, Verbs: verbs}, nil
}

// AskRights is the RBAC rule for reviewing the syncer's own permissions.
var AskRights = rbacv1.PolicyRule{
	APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"selfsubjectaccessreviews"}, Verbs: []string{"create"},
}
