package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// rulesOf returns the rules of a role. Those of an aggregated one are the rules of
// the roles that it selects, also if these are aggregated; seen has the names of
// those on the way.
func (t Tenant) rulesOf(role *rbacv1.ClusterRole, seen map[string]bool) []rbacv1.PolicyRule {
	if role.AggregationRule == nil {
		return role.Rules
	}
	seen[role.Name] = true
	var rules []rbacv1.PolicyRule
	for _, each := range t.visibleRoles() {
		if !seen[each.Name] && selects(role.AggregationRule, each) {
			rules = append(rules, t.rulesOf(each, seen)...)
		}
	}
	return rules
}

func selects(rule *rbacv1.AggregationRule, role *rbacv1.ClusterRole) bool {
	for i := range rule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i])
		if err == nil && selector.Matches(labels.Set(role.Labels)) {
			return true
		}
	}
	return false
}

// Aggregate sets the rules in the document of an aggregated role, or in those of a
// list of roles, to the ones that hold in the tenant. Nothing stores them, and
// those of a shared role may be of other roles of the super cluster.
func (t Tenant) Aggregate(document map[string]any) {
	if items, isList := document["items"].([]any); isList {
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				t.Aggregate(object)
			}
		}
		return
	}
	if document["aggregationRule"] == nil {
		return
	}
	role := &rbacv1.ClusterRole{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(document, role) != nil {
		return
	}
	role.Rules = t.rulesOf(role, map[string]bool{})
	if converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role); err == nil {
		document["rules"] = converted["rules"]
	}
}
