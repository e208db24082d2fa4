package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Object is a Role, RoleBinding, ClusterRole or ClusterRoleBinding.
type Object interface{ metav1.Object }

// errAggregates is that only one who may do all may gather rules that others
// write.
var errAggregates = errors.New("must have cluster-admin privileges to use an aggregationRule")

// fullAuthority is the permission to do all.
var fullAuthority = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Unlimited reports whether a user may write each role and binding.
func Unlimited(who user.Info) bool {
	return slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
}

// Confirm returns why a user may not write a role or binding in a namespace of
// the tenant: it would grant what the user has not. Before is the object that
// after replaces; nil if there is none.
func (t Tenant) Confirm(ctx context.Context, who user.Info, namespace string, before, after Object) error {
	if Unlimited(who) || before != nil && onlyCollects(before, after) {
		return nil
	}
	switch object := after.(type) {
	case *rbacv1.Role:
		if t.may(ctx, who, "escalate", "roles", namespace, object.Name) {
			return nil
		}
		return t.covers(who, namespace, object.Rules)
	case *rbacv1.ClusterRole:
		if t.may(ctx, who, "escalate", clusterRoles, "", object.Name) {
			return nil
		}
		if err := t.covers(who, "", object.Rules); err != nil {
			return err
		}
		if (aggregates(before) || aggregates(after)) && t.covers(who, "", fullAuthority) != nil {
			return errAggregates
		}
		return nil
	case *rbacv1.RoleBinding:
		return t.confirmBinding(ctx, who, namespace, object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return t.confirmBinding(ctx, who, "", object.RoleRef)
	}
	return fmt.Errorf("%T is no role and no binding", after)
}

func (t Tenant) confirmBinding(ctx context.Context, who user.Info, namespace string, ref rbacv1.RoleRef) error {
	if t.may(ctx, who, "bind", rolesOf[ref.Kind], namespace, ref.Name) {
		return nil
	}
	rules, err := t.RulesOf(ref, namespace)
	if err != nil {
		return err
	}
	return t.covers(who, namespace, rules)
}

func aggregates(object Object) bool {
	role, ok := object.(*rbacv1.ClusterRole)
	return ok && role != nil && role.AggregationRule != nil
}

// may reports whether a user has a permission about a role.
func (t Tenant) may(ctx context.Context, who user.Info, verb, resource, namespace, name string) bool {
	decision, _, _ := t.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: rbacv1.GroupName, APIVersion: "*", Resource: resource, Namespace: namespace, Name: name,
		ResourceRequest: true,
	})
	return decision == authorizer.DecisionAllow
}

// covers returns an error if a user has not all that rules permit.
func (t Tenant) covers(who user.Info, namespace string, rules []rbacv1.PolicyRule) error {
	held, unresolved := t.rulesFor(who, namespace)
	covered, missing := validation.Covers(held, rules)
	if covered {
		return nil
	}
	descriptions := make([]string, len(missing))
	for i, rule := range missing {
		descriptions[i] = describe(rule)
	}
	slices.Sort(descriptions)
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		who.GetName(), who.GetGroups(), strings.Join(slices.Compact(descriptions), "\n"))
	if unresolved != nil {
		message += fmt.Sprintf("; resolution errors: %v", unresolved)
	}
	return errors.New(message)
}

// describe returns a rule in the form of an apiserver's errors.
func describe(rule rbacv1.PolicyRule) string {
	var parts []string
	for _, field := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", rule.APIGroups}, {"Resources", rule.Resources}, {"NonResourceURLs", rule.NonResourceURLs},
		{"ResourceNames", rule.ResourceNames}, {"Verbs", rule.Verbs},
	} {
		if len(field.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", field.name, field.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// onlyCollects reports whether an update changes only what the garbage collector
// changes: a user without any rights may delete a role.
func onlyCollects(before, after Object) bool {
	old, changed := withoutOwners(before), withoutOwners(after)
	return old != nil && equality.Semantic.DeepEqual(old, changed)
}

func withoutOwners(object Object) Object {
	var kept Object
	switch o := object.(type) {
	case *rbacv1.Role:
		kept = o.DeepCopy()
	case *rbacv1.RoleBinding:
		kept = o.DeepCopy()
	case *rbacv1.ClusterRole:
		kept = o.DeepCopy()
	case *rbacv1.ClusterRoleBinding:
		kept = o.DeepCopy()
	default:
		return nil
	}
	kept.SetOwnerReferences(nil)
	kept.SetFinalizers(nil)
	kept.SetManagedFields(nil)
	return kept
}
