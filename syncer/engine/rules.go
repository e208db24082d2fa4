package engine

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Rules are the rights that an engine of these kinds uses in the super cluster: no more than what it sends. Those for custom
// resources nobody can know before a tenant asks for one.
func Rules(kinds []Kind, scheme *runtime.Scheme) ([]rbacv1.PolicyRule, error) {
	definitions, err := right(scheme, &apiextensionsv1.CustomResourceDefinition{}, "", "get")
	if err != nil {
		return nil, err
	}
	rules := []rbacv1.PolicyRule{definitions, askRights}
	for _, k := range kinds {
		own, err := k.spec().rules(scheme)
		if err != nil {
			return nil, err
		}
		rules = append(rules, own...)
	}
	return rules, nil
}

// rules are the rights that carrying one kind takes.
func (k *kind) rules(scheme *runtime.Scheme) ([]rbacv1.PolicyRule, error) {
	own, err := right(scheme, k.object, "", k.verbs()...)
	if err != nil || k.down == nil {
		return []rbacv1.PolicyRule{own}, err
	}
	rules := []rbacv1.PolicyRule{own}
	for _, sub := range k.down.subresources {
		patch, err := right(scheme, k.object, sub.name, "patch")
		if err != nil {
			return nil, err
		}
		rules = append(rules, patch)
	}
	return rules, nil
}

// verbs are what is asked of the super cluster about objects of a kind. What flows up is read from a cache alone.
func (k *kind) verbs() []string {
	follow := []string{"list", "watch"}
	switch {
	case k.down != nil:
		return append(follow, "get", "create", "patch", "delete")
	case k.up.back != nil:
		return append(follow, "patch")
	}
	return follow
}

// right is what allows to do this with the objects of one kind, or with a subresource of theirs.
func right(scheme *runtime.Scheme, obj client.Object, subresource string, verbs ...string) (rbacv1.PolicyRule, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return rbacv1.PolicyRule{}, fmt.Errorf("naming the resource of %T: %w", obj, err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	resource := plural.Resource
	if subresource != "" {
		resource += "/" + subresource
	}
	return rbacv1.PolicyRule{APIGroups: []string{gvk.Group}, Resources: []string{resource}, Verbs: verbs}, nil
}
