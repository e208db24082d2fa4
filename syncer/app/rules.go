package app

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/share"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/provider"
)

// Rules returns the minimum RBAC rules of a syncer of these kinds in the super
// cluster. They allow it to write to every namespace, because tenants come and
// go; the guard restricts each write to the namespaces of its tenant.
func Rules(flows []kinds.Flow) ([]rbacv1.PolicyRule, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	syncing, err := kinds.Rules(flows, scheme)
	if err != nil {
		return nil, err
	}
	return merged(slices.Concat(provider.Rules(), syncing, component.MetricsRules())), nil
}

// LeaderRules returns the RBAC rules in the namespace of the leader election.
func LeaderRules() []rbacv1.PolicyRule { return component.LeaderRules(name) }

// ShareRules returns the RBAC rules in the namespace of the replicas' leases.
func ShareRules() []rbacv1.PolicyRule { return share.Rules() }

// right is the resource of a rule.
type right struct{ group, resource string }

// merged returns equivalent rules, with one rule for all resources of a group
// that have the same verbs.
func merged(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	verbs := map[right]sets.Set[string]{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				r := right{group, resource}
				verbs[r] = sets.New(rule.Verbs...).Union(verbs[r])
			}
		}
	}
	byGroup := func(a, b right) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource))
	}
	var out []rbacv1.PolicyRule
	for _, r := range slices.SortedFunc(maps.Keys(verbs), byGroup) {
		own := sets.List(verbs[r])
		i := slices.IndexFunc(out, func(o rbacv1.PolicyRule) bool {
			return o.APIGroups[0] == r.group && slices.Equal(o.Verbs, own)
		})
		if i >= 0 {
			out[i].Resources = append(out[i].Resources, r.resource)
			continue
		}
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: own})
	}
	return out
}
