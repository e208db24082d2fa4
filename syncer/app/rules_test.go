package app

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// TestRulesAreNarrow checks that there are no wildcards, and no permissions by
// which others can be gained.
func TestRulesAreNarrow(t *testing.T) {
	rules, err := Rules(resources.All(resources.Agent{}, nil))
	if err != nil {
		t.Fatal(err)
	}
	verbs := []string{"get", "list", "watch", "create", "patch", "delete"}
	for _, rule := range slices.Concat(rules, LeaderRules(), ShareRules()) {
		for _, verb := range rule.Verbs {
			lease := verb == "update" && slices.Equal(rule.Resources, []string{"leases"})
			if !lease && !slices.Contains(verbs, verb) {
				t.Errorf("the syncer may %s %v", verb, rule.Resources)
			}
		}
		for _, of := range slices.Concat(rule.APIGroups, rule.Resources) {
			if slices.Contains([]string{"*", "rbac.authorization.k8s.io", "serviceaccounts/token", "pods/exec", "nodes/proxy"}, of) {
				t.Errorf("the syncer has rights on %s", of)
			}
		}
	}
}

// TestTheRightsAreWhereTheLeasesAre checks that the manifests and the default
// of the flag have the same namespace.
func TestTheRightsAreWhereTheLeasesAre(t *testing.T) {
	if options := DefaultOptions(); options.ShareNamespace != rbac.ReplicasNamespace {
		t.Errorf("the leases are in %s, the rights in %s", options.ShareNamespace, rbac.ReplicasNamespace)
	}
}

func TestMerged(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	for name, tc := range map[string]struct{ rules, want []rbacv1.PolicyRule }{
		"a resource in two rules": {
			[]rbacv1.PolicyRule{rule("", "secrets", "watch", "list"), rule("", "secrets", "create", "list")},
			[]rbacv1.PolicyRule{rule("", "secrets", "create", "list", "watch")},
		},
		"resources with the same verbs": {
			[]rbacv1.PolicyRule{rule("", "services", "get"), rule("", "pods", "get")},
			[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "services"}, Verbs: []string{"get"}}},
		},
		"resources with other verbs": {
			[]rbacv1.PolicyRule{rule("", "services", "get"), rule("", "pods", "list")},
			[]rbacv1.PolicyRule{rule("", "pods", "list"), rule("", "services", "get")},
		},
		"groups": {
			[]rbacv1.PolicyRule{rule("events.k8s.io", "events", "get"), rule("", "events", "get")},
			[]rbacv1.PolicyRule{rule("", "events", "get"), rule("events.k8s.io", "events", "get")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, merged(tc.rules)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
