package rbac

import (
	"context"
	"errors"
	"fmt"
	"iter"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

// Tenant decides by the roles and bindings of one tenant.
type Tenant struct {
	// Key is the cluster key.
	Key string
	// Store has the roles.
	Store *Store
}

var (
	_ authorizer.Authorizer   = Tenant{}
	_ authorizer.RuleResolver = Tenant{}
)

// Authorize implements authorizer.Authorizer.
func (t Tenant) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	var problems []error
	for grant, err := range t.grants(a.GetUser(), a.GetNamespace()) {
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for i := range grant.rules {
			if allows(&grant.rules[i], a) {
				return authorizer.DecisionAllow, "RBAC: allowed by " + grant.by(), nil
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", err), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// RulesFor implements authorizer.RuleResolver.
func (t Tenant) RulesFor(
	_ context.Context, who user.Info, namespace string,
) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	var resources []authorizer.ResourceRuleInfo
	var others []authorizer.NonResourceRuleInfo
	rules, err := t.rulesFor(who, namespace)
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			others = append(others, &authorizer.DefaultNonResourceRuleInfo{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return resources, others, false, err
}

// rulesFor returns all rules for a user. After an error, some are missing.
func (t Tenant) rulesFor(who user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	var problems []error
	for grant, err := range t.grants(who, namespace) {
		rules, problems = append(rules, grant.rules...), append(problems, err)
	}
	return rules, errors.Join(problems...)
}

// grant is what one binding grants to a user.
type grant struct {
	binding, name string
	role          rbacv1.RoleRef
	rules         []rbacv1.PolicyRule
}

func (g grant) by() string {
	return fmt.Sprintf("%s %q of %s %q", g.binding, g.name, g.role.Kind, g.role.Name)
}

// grants returns what bindings grant to a user in a namespace, or in the whole
// tenant. It has an error for each binding of a role that does not exist.
func (t Tenant) grants(who user.Info, namespace string) iter.Seq2[grant, error] {
	return func(yield func(grant, error) bool) {
		for _, subject := range subjectsOf(who, "") {
			for _, binding := range t.clusterRoleBindings(subject) {
				rules, err := t.RulesOf(binding.RoleRef, "")
				if !yield(grant{"ClusterRoleBinding", naming.Unshelved(binding.Name), binding.RoleRef, rules}, err) {
					return
				}
			}
		}
		super, err := naming.Namer{Key: t.Key}.Namespace(namespace)
		if err != nil {
			return // no binding is in a namespace that cannot exist
		}
		for _, subject := range subjectsOf(who, namespace) {
			for _, each := range find(t.Store.roleBindings, subjectIndex, scope{t.Key, super}.key()+"/"+subject) {
				binding := each.(*rbacv1.RoleBinding)
				rules, err := t.RulesOf(binding.RoleRef, namespace)
				if !yield(grant{"RoleBinding", naming.Unshelved(binding.Name) + "/" + namespace, binding.RoleRef, rules}, err) {
					return
				}
			}
		}
	}
}

// clusterRoleBindings returns the bindings of a subject in the whole tenant.
func (t Tenant) clusterRoleBindings(subject string) []*rbacv1.ClusterRoleBinding {
	var bindings []*rbacv1.ClusterRoleBinding
	for _, each := range find(t.Store.clusterRoleBindings, subjectIndex, scope{"", t.Key}.key()+"/"+subject) {
		bindings = append(bindings, each.(*rbacv1.ClusterRoleBinding))
	}
	for _, each := range find(t.Store.sharedBindings, subjectIndex, scope{}.key()+"/"+subject) {
		binding := each.(*rbacv1.ClusterRoleBinding)
		if _, changed := t.own(t.Store.clusterRoleBindings, t.Key, binding.Name); !changed {
			bindings = append(bindings, binding)
		}
	}
	return bindings
}

// RulesOf returns the rules of a role that a binding in a namespace, or in the
// whole tenant, refers to.
func (t Tenant) RulesOf(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	missing := apierrors.NewNotFound(rbacv1.Resource(rolesOf[ref.Kind]), ref.Name)
	if ref.Kind == clusterRoleKind {
		role, ok := t.clusterRole(ref.Name)
		if !ok {
			return nil, missing
		}
		return t.rulesOf(role, map[string]bool{}), nil
	}
	super, err := naming.Namer{Key: t.Key}.Namespace(namespace)
	if err != nil {
		return nil, missing
	}
	found, ok := t.own(t.Store.roles, super, ref.Name)
	if !ok || scopeOf(found).tenant != t.Key {
		return nil, missing
	}
	return found.(*rbacv1.Role).Rules, nil
}

// rolesOf are the resources of the kinds of roles.
var rolesOf = map[string]string{"Role": "roles", clusterRoleKind: clusterRoles}

// clusterRole returns a role of the whole tenant: its own, or a shared one.
func (t Tenant) clusterRole(name string) (*rbacv1.ClusterRole, bool) {
	if found, ok := t.own(t.Store.clusterRoles, t.Key, name); ok {
		return found.(*rbacv1.ClusterRole), true
	}
	found, ok, err := t.Store.sharedRoles.GetIndexer().GetByKey(name)
	if err != nil || !ok {
		return nil, false
	}
	return found.(*rbacv1.ClusterRole), true
}

// visibleRoles returns all roles of the whole tenant.
func (t Tenant) visibleRoles() []*rbacv1.ClusterRole {
	var roles []*rbacv1.ClusterRole
	for _, each := range find(t.Store.clusterRoles, scopeIndex, scope{"", t.Key}.key()) {
		roles = append(roles, each.(*rbacv1.ClusterRole))
	}
	for _, each := range t.Store.sharedRoles.GetIndexer().List() {
		role := each.(*rbacv1.ClusterRole)
		if _, changed := t.own(t.Store.clusterRoles, t.Key, role.Name); !changed {
			roles = append(roles, role)
		}
	}
	return roles
}

// own returns an object in a namespace of the super cluster by its name in the
// tenant.
func (Tenant) own(of cache.SharedIndexInformer, namespace, name string) (metav1.Object, bool) {
	stored, err := naming.Shelved(name)
	if err != nil {
		return nil, false
	}
	found, ok, err := of.GetIndexer().GetByKey(namespace + "/" + stored)
	if err != nil || !ok {
		return nil, false
	}
	return found.(metav1.Object), true
}

// find returns objects by an index that each informer has.
func find(in cache.SharedIndexInformer, index, key string) []any {
	found, _ := in.GetIndexer().ByIndex(index, key)
	return found
}
