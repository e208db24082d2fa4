package rbac

import (
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const red, blue = "team-0a1b2c-red", "team-9d8e7f-blue"

// storeOf returns a store with objects, as the super cluster has them.
func storeOf(t *testing.T, objects ...Object) *Store {
	t.Helper()
	s, err := NewStore(&rest.Config{Host: "https://super"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		in := s.roles
		switch object.(type) {
		case *rbacv1.RoleBinding:
			in = s.roleBindings
		case *rbacv1.ClusterRole:
			if in = s.clusterRoles; object.GetNamespace() == "" {
				in = s.sharedRoles
			}
		case *rbacv1.ClusterRoleBinding:
			if in = s.clusterRoleBindings; object.GetNamespace() == "" {
				in = s.sharedBindings
			}
		}
		if err := in.GetIndexer().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// meta returns the metadata in the super cluster of an object in a namespace of a
// tenant, in a whole tenant, or in all.
func meta(t *testing.T, tenant, namespace, name string) metav1.ObjectMeta {
	t.Helper()
	stored, err := naming.Shelved(name)
	switch {
	case err != nil:
		t.Fatal(err)
	case tenant == "":
		return metav1.ObjectMeta{Name: name}
	case namespace == "":
		return metav1.ObjectMeta{Namespace: tenant, Name: stored}
	}
	return metav1.ObjectMeta{
		Namespace: names.SuperNamespace(tenant, namespace), Name: stored, Labels: map[string]string{names.Converted: tenant},
	}
}

func may(verb, resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}}}
}

func ref(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func subjects(kind, namespace, name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: kind, Namespace: namespace, Name: name}}
}

// sample has a role and a binding of each kind.
func sample(t *testing.T) *Store {
	t.Helper()
	return storeOf(t,
		&rbacv1.ClusterRole{ObjectMeta: meta(t, "", "", "system:basic"), Rules: may("create", "reviews")},
		&rbacv1.ClusterRole{ObjectMeta: meta(t, "", "", "view"), Rules: may("get", "pods")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, "", "", "system:basic"), RoleRef: ref("ClusterRole", "system:basic"), Subjects: subjects("Group", "", user.AllAuthenticated)},

		&rbacv1.ClusterRole{ObjectMeta: meta(t, red, "", "Deployer:all"), Rules: may("update", "deployments")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, red, "", "a:b"), RoleRef: ref("ClusterRole", "Deployer:all"), Subjects: subjects("User", "", "anna")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, red, "", "open"), RoleRef: ref("ClusterRole", "view"), Subjects: subjects("Group", "", user.AllUnauthenticated)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, red, "", "broken"), RoleRef: ref("ClusterRole", "missing"), Subjects: subjects("User", "", "ben")},
		&rbacv1.Role{ObjectMeta: meta(t, red, "shop", "reader"), Rules: may("get", "secrets")},
		&rbacv1.RoleBinding{ObjectMeta: meta(t, red, "shop", "reader"), RoleRef: ref("Role", "reader"), Subjects: subjects("ServiceAccount", "", "robot")},
		&rbacv1.RoleBinding{ObjectMeta: meta(t, red, "shop", "far"), RoleRef: ref("ClusterRole", "view"), Subjects: subjects("ServiceAccount", "other", "robot")},

		&rbacv1.ClusterRole{ObjectMeta: meta(t, blue, "", "view"), Rules: may("list", "pods")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, blue, "", "a"), RoleRef: ref("ClusterRole", "view"), Subjects: subjects("User", "", "anna")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, blue, "", "system:basic"), RoleRef: ref("ClusterRole", "view")},
	)
}

func TestAuthorize(t *testing.T) {
	store := sample(t)
	const robot = "system:serviceaccount:shop:robot"
	for name, tt := range map[string]struct {
		tenant, user, group, verb, namespace, resource string

		want bool
	}{
		"a user by a binding of the whole tenant":   {red, "anna", "", "update", "shop", "deployments", true},
		"a user of another tenant of the same name": {blue, "anna", "", "update", "shop", "deployments", false},
		"another user":                {red, "ben", "", "update", "shop", "deployments", false},
		"a group by a shared binding": {red, "ben", user.AllAuthenticated, "create", "", "reviews", true},
		"a group by a shared binding that a tenant changed": {blue, "ben", user.AllAuthenticated, "create", "", "reviews", false},
		"a shared role that a tenant changed":               {blue, "anna", "", "get", "", "pods", false},
		"the same role as the tenant changed it":            {blue, "anna", "", "list", "", "pods", true},
		"anonymous users where they may":                    {red, user.Anonymous, user.AllUnauthenticated, "get", "shop", "pods", true},
		"anonymous users of another tenant":                 {blue, user.Anonymous, user.AllUnauthenticated, "get", "shop", "pods", false},
		"a service account of the binding's namespace":      {red, robot, "", "get", "shop", "secrets", true},
		"its name in another namespace":                     {red, "system:serviceaccount:other:robot", "", "get", "shop", "secrets", false},
		"a service account of a named namespace":            {red, "system:serviceaccount:other:robot", "", "get", "shop", "pods", true},
		"a role in another namespace":                       {red, robot, "", "get", "other", "secrets", false},
		"a role in all namespaces":                          {red, robot, "", "get", "", "secrets", false},
		"a namespace of another tenant":                     {blue, robot, "", "get", "shop", "secrets", false},
		"a namespace that cannot exist":                     {red, robot, "", "get", "../shop", "secrets", false},
	} {
		who := &user.DefaultInfo{Name: tt.user, Groups: []string{tt.group}}
		asks := authorizer.AttributesRecord{User: who, Verb: tt.verb, Namespace: tt.namespace, Resource: tt.resource, ResourceRequest: true}
		decision, reason, err := Tenant{tt.tenant, store}.Authorize(t.Context(), asks)
		if err != nil || (decision == authorizer.DecisionAllow) != tt.want {
			t.Errorf("%s: %v, %q, %v", name, decision, reason, err)
		}
		if strings.Contains(reason, tt.tenant) {
			t.Errorf("%s: the reason shows the key: %s", name, reason)
		}
	}
	_, reason, _ := Tenant{red, store}.Authorize(t.Context(), authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "ben"}})
	if want := `RBAC: clusterroles.rbac.authorization.k8s.io "missing" not found`; reason != want {
		t.Errorf("the reason is %q, want %q", reason, want)
	}
	_, reason, _ = Tenant{red, store}.Authorize(t.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "anna"}, Verb: "update", Resource: "deployments", ResourceRequest: true,
	})
	if want := `RBAC: allowed by ClusterRoleBinding "a:b" of ClusterRole "Deployer:all"`; reason != want {
		t.Errorf("the reason is %q, want %q", reason, want)
	}
}

// TestAggregation: an aggregated role has the rules of the roles that it selects,
// shared ones and the tenant's, and a circle ends.
func TestAggregation(t *testing.T) {
	aggregates := func(label string) *rbacv1.AggregationRule {
		return &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}}}
	}
	labelled := func(meta metav1.ObjectMeta, label string) metav1.ObjectMeta {
		meta.Labels = map[string]string{label: "true"}
		return meta
	}
	store := storeOf(t,
		&rbacv1.ClusterRole{ObjectMeta: labelled(meta(t, "", "", "view"), "edits"), AggregationRule: aggregates("views"), Rules: may("get", "platform")},
		&rbacv1.ClusterRole{ObjectMeta: labelled(meta(t, "", "", "base"), "views"), Rules: may("get", "pods")},
		&rbacv1.ClusterRole{ObjectMeta: labelled(meta(t, "", "", "edit"), "views"), AggregationRule: aggregates("edits")},
		&rbacv1.ClusterRole{ObjectMeta: labelled(meta(t, red, "", "widgets"), "views"), Rules: may("get", "widgets")},
	)
	for tenant, want := range map[string]string{red: "pods widgets", blue: "pods"} {
		for _, role := range []string{"view", "edit"} {
			rules, err := Tenant{tenant, store}.RulesOf(ref("ClusterRole", role), "")
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, rule := range rules {
				found[rule.Resources[0]] = true
			}
			shown, _ := Tenant{tenant, store}.Shared("clusterroles", role)
			Tenant{tenant, store}.Aggregate(map[string]any{"items": []any{shown}})
			if parsed, err := Parse("clusterroles", shown); err != nil || !reflect.DeepEqual(parsed.(*rbacv1.ClusterRole).Rules, rules) {
				t.Errorf("%s of %s is shown as %v, %v, want %v", role, tenant, shown, err, rules)
			}
			for _, resource := range []string{"pods", "widgets", "platform"} {
				if found[resource] != strings.Contains(want, resource) {
					t.Errorf("%s of %s: %v", role, tenant, rules)
				}
			}
		}
	}
}

func TestConfirm(t *testing.T) {
	store := storeOf(t,
		&rbacv1.ClusterRole{ObjectMeta: meta(t, "", "", "cluster-admin"), Rules: fullAuthority},
		&rbacv1.ClusterRole{ObjectMeta: meta(t, red, "", "pods"), Rules: may("get", "pods")},
		&rbacv1.ClusterRole{ObjectMeta: meta(t, red, "", "binder"), Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"cluster-admin"}},
		}},
		&rbacv1.ClusterRole{ObjectMeta: meta(t, red, "", "escalator"), Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"escalate"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"*"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, red, "", "a"), RoleRef: ref("ClusterRole", "pods"), Subjects: subjects("User", "", "anna")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, red, "", "b"), RoleRef: ref("ClusterRole", "binder"), Subjects: subjects("User", "", "binder")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, red, "", "c"), RoleRef: ref("ClusterRole", "escalator"), Subjects: subjects("User", "", "escalator")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta(t, red, "", "d"), RoleRef: ref("ClusterRole", "cluster-admin"), Subjects: subjects("User", "", "root")},
	)
	aggregating := &rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}}
	binding := &rbacv1.ClusterRoleBinding{RoleRef: ref("ClusterRole", "cluster-admin")}
	held := &rbacv1.ClusterRole{Rules: may("get", "pods")}
	more := &rbacv1.ClusterRole{Rules: may("get", "secrets")}
	for name, tt := range map[string]struct {
		user          string
		before, after Object
		want          string // in the error
	}{
		"what the user has":                   {"anna", nil, held, ""},
		"a role with more":                    {"anna", nil, more, `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`},
		"more in a namespace":                 {"anna", nil, &rbacv1.Role{Rules: may("get", "secrets")}, "not currently held"},
		"more, by an update":                  {"anna", held, more, "not currently held"},
		"the owner of a role with more":       {"anna", more, &rbacv1.ClusterRole{Rules: more.Rules, ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a/b"}}}, ""},
		"a label of a role with more":         {"anna", more, &rbacv1.ClusterRole{Rules: more.Rules, ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}, "not currently held"},
		"a binding of a role with more":       {"anna", nil, binding, "not currently held"},
		"a binding of no role":                {"anna", nil, &rbacv1.ClusterRoleBinding{RoleRef: ref("ClusterRole", "missing")}, "not found"},
		"an aggregation":                      {"anna", nil, aggregating, errAggregates.Error()},
		"the end of an aggregation":           {"anna", aggregating, held, errAggregates.Error()},
		"an aggregation by the admin":         {"root", nil, aggregating, ""},
		"a binding by one who may bind":       {"binder", nil, binding, ""},
		"a role by one who may bind":          {"binder", nil, more, "not currently held"},
		"a role by one who may escalate":      {"escalator", nil, more, ""},
		"a binding by one who may escalate":   {"escalator", nil, binding, "not currently held"},
		"a binding of a kind that is no role": {"anna", nil, &rbacv1.RoleBinding{RoleRef: ref("Secret", "a")}, "not found"},
	} {
		err := Tenant{red, store}.Confirm(t.Context(), &user.DefaultInfo{Name: tt.user}, "shop", tt.before, tt.after)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := (Tenant{blue, store}).Confirm(t.Context(), &user.DefaultInfo{Name: "root"}, "shop", nil, more); err == nil {
			t.Errorf("%s: a user of the same name in another tenant", name)
		}
		master := &user.DefaultInfo{Groups: []string{user.SystemPrivilegedGroup}}
		if err := (Tenant{blue, store}).Confirm(t.Context(), master, "shop", tt.before, tt.after); err != nil {
			t.Errorf("%s: an admin: %v", name, err)
		}
	}
}

func TestShared(t *testing.T) {
	store := sample(t)
	for tenant, want := range map[string]int{red: 1, blue: 0} {
		found, err := Tenant{tenant, store}.AllShared("clusterrolebindings", labels.Everything())
		if err != nil || len(found) != want {
			t.Errorf("%s shares %v, %v, want %d", tenant, found, err, want)
		}
	}
	role, ok := Tenant{red, store}.Shared("clusterroles", "view")
	if !ok || role["kind"] != "ClusterRole" || role["apiVersion"] != "rbac.authorization.k8s.io/v1" {
		t.Errorf("the shared role is %v, %t", role, ok)
	}
	role["metadata"].(map[string]any)["name"] = "changed"
	if again, _ := (Tenant{red, store}).Shared("clusterroles", "view"); again["metadata"].(map[string]any)["name"] != "view" {
		t.Error("a caller changes the shared role")
	}
	if _, ok := (Tenant{red, store}).Shared("roles", "reader"); ok {
		t.Error("roles in namespaces are shared")
	}
}
