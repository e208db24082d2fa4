package rbac

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// of is the one object of a kind and name among the manifests, as the type that it is.
func of[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, obj := range objects {
		if obj.GetKind() != kind || obj.GetName() != name {
			continue
		}
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, typed, true); err != nil {
			t.Fatalf("%s %s: %v", kind, name, err)
		}
		return typed
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// bound returns a program's service account, which is bound to the program's
// role of the whole cluster.
func bound(t *testing.T, objects []*unstructured.Unstructured, program string) rbacv1.Subject {
	t.Helper()
	account := rbacv1.Subject{Kind: "ServiceAccount", Namespace: Namespace, Name: program}
	if sa := of[metav1.PartialObjectMetadata](t, objects, "ServiceAccount", program); sa.Namespace != Namespace {
		t.Errorf("the service account is in %q", sa.Namespace)
	}
	binding := of[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding", program)
	if binding.Subjects[0] != account || binding.RoleRef.Kind != "ClusterRole" || binding.RoleRef.Name != program {
		t.Errorf("%+v has %+v", binding.Subjects, binding.RoleRef)
	}
	return account
}

// TestForSyncer: the service account is bound to a role of the whole cluster,
// which takes up the generated one, and to one in each of the namespaces where
// it has leases.
func TestForSyncer(t *testing.T) {
	objects, err := For(Syncer)
	if err != nil {
		t.Fatal(err)
	}
	if first := objects[0]; first.GetKind() != "Namespace" || first.GetName() != Namespace {
		t.Errorf("the first object is %s %s, want the namespace that others are in", first.GetKind(), first.GetName())
	}
	account := bound(t, objects, Syncer)
	aggregated := of[rbacv1.ClusterRole](t, objects, "ClusterRole", Syncer)
	base := of[rbacv1.ClusterRole](t, objects, "ClusterRole", Syncer+"-base")
	selector, err := metav1.LabelSelectorAsSelector(&aggregated.AggregationRule.ClusterRoleSelectors[0])
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set{AggregateToSyncer: "true"}) || !selector.Matches(labels.Set(base.Labels)) {
		t.Errorf("%s does not take up %s, whose labels are %v", selector, base.Name, base.Labels)
	}
	if len(base.Rules) == 0 {
		t.Error("the generated role has no rules")
	}

	for name, namespace := range map[string]string{Syncer: Namespace, Syncer + "-replicas": ReplicasNamespace} {
		own := of[rbacv1.RoleBinding](t, objects, "RoleBinding", name)
		if own.Namespace != namespace || own.Subjects[0] != account || own.RoleRef.Kind != "Role" || own.RoleRef.Name != name {
			t.Errorf("in %s, %+v has %+v", own.Namespace, own.Subjects, own.RoleRef)
		}
		if role := of[rbacv1.Role](t, objects, "Role", name); role.Namespace != namespace || len(role.Rules) == 0 {
			t.Errorf("the role in %s has the rules %v", role.Namespace, role.Rules)
		}
	}
	of[metav1.PartialObjectMetadata](t, objects, "Namespace", ReplicasNamespace)
}

// TestForManager: the manager writes the Secrets of its namespace that hold its
// certificates, and the one configuration of its webhook. Of RBAC, it binds
// one role.
func TestForManager(t *testing.T) {
	objects, err := For(Manager)
	if err != nil {
		t.Fatal(err)
	}
	bound(t, objects, Manager)
	got := map[string][]string{}
	for _, rule := range of[rbacv1.Role](t, objects, "Role", Manager).Rules {
		if rule.Resources[0] == "secrets" {
			got["secrets "+strings.Join(rule.ResourceNames, ",")] = rule.Verbs
		}
	}
	for _, rule := range of[rbacv1.ClusterRole](t, objects, "ClusterRole", Manager).Rules {
		if rule.Resources[0] == "validatingwebhookconfigurations" {
			got["webhooks "+strings.Join(rule.ResourceNames, ",")] = rule.Verbs
		}
		if rule.APIGroups[0] == rbacv1.GroupName {
			got[rule.Resources[0]+" "+strings.Join(rule.ResourceNames, ",")] = rule.Verbs
		}
	}
	want := map[string][]string{
		"secrets vc-manager-webhook":                     {"create", "get", "list", "patch", "update", "watch"},
		"secrets vc-store-authority":                     {"create", "get", "patch", "update"},
		"secrets vc-store-client":                        {"create", "get", "patch", "update"},
		"secrets vc-store-members":                       {"create", "get", "patch", "update"},
		"webhooks vc-manager":                            {"get", "list", "patch", "watch"},
		"clusterroles vc-host-keys":                      {"bind"},
		"clusterroles converted-tenant.tenancy.x-k8s.io": {"bind"},
		"clusterroles converted-root.tenancy.x-k8s.io":   {"bind"},
		"rolebindings converted-tenant.tenancy.x-k8s.io": {"create", "get", "patch"},
		"rolebindings converted-root.tenancy.x-k8s.io":   {"create", "get", "patch"},
		"rolebindings vc-host-keys":                      {"create", "get", "patch"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestForAgent: the agent reads namespaces, pods and what they use, whose it
// must know, and nothing that is secret.
func TestForAgent(t *testing.T) {
	objects, err := For(Agent)
	if err != nil {
		t.Fatal(err)
	}
	bound(t, objects, Agent)
	got := map[string][]string{}
	for _, rule := range of[rbacv1.ClusterRole](t, objects, "ClusterRole", Agent).Rules {
		for _, resource := range rule.Resources {
			name := schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}.String()
			got[name+strings.Join(rule.ResourceNames, ",")] = rule.Verbs
		}
	}
	want := map[string][]string{
		"virtualclusters.tenancy.x-k8s.io":   {"list", "watch"},
		"configmapskubelet-client-ca":        {"list", "watch"},
		"namespaces":                         {"get", "list"},
		"pods":                               {"get", "list"},
		"pods.metrics.k8s.io":                {"list"},
		"pods/log":                           {"get"},
		"pods/exec":                          {"create", "get"},
		"pods/attach":                        {"create", "get"},
		"pods/portforward":                   {"create", "get"},
		"tokenreviews.authentication.k8s.io": {"create"},
		"subjectaccessreviews.authorization.k8s.io": {"create"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestForHost: vc-host uses the Secrets of control planes in namespaces where
// vc-manager binds a role of its own, and reads one of its namespace: the
// others there are those of other components, and credentials of stores that admins add.
func TestForHost(t *testing.T) {
	objects, err := For(Host)
	if err != nil {
		t.Fatal(err)
	}
	account := bound(t, objects, Host)
	for _, rule := range of[rbacv1.ClusterRole](t, objects, "ClusterRole", Host).Rules {
		for _, resource := range rule.Resources {
			if resource == "secrets" || resource == "*" || resource == "roles" || resource == "rolebindings" {
				t.Errorf("in all namespaces, it may %s %s", rule.Verbs, resource)
			}
		}
	}
	secrets, core := []string{"secrets"}, []string{""}
	clients, keys := tenancyv1alpha1.HostedControlPlaneSecret, tenancyv1alpha1.HostedControlPlaneKeys
	for _, want := range []struct {
		kind, name string
		rules      []rbacv1.PolicyRule
	}{
		{"ClusterRole", HostKeys, []rbacv1.PolicyRule{
			{APIGroups: core, Resources: secrets, Verbs: []string{"create"}},
			{APIGroups: core, Resources: secrets, ResourceNames: []string{clients, keys}, Verbs: []string{"delete", "get", "update"}},
		}},
		{"Role", Host, []rbacv1.PolicyRule{
			{APIGroups: core, Resources: secrets, ResourceNames: []string{"vc-store-client"}, Verbs: []string{"get"}},
		}},
	} {
		if diff := cmp.Diff(want.rules, of[rbacv1.ClusterRole](t, objects, want.kind, want.name).Rules); diff != "" {
			t.Errorf("%s %s: %s", want.kind, want.name, diff)
		}
	}
	of[metav1.PartialObjectMetadata](t, objects, "Namespace", HostReplicasNamespace)
	for name, namespace := range map[string]string{Host: Namespace, HostReplicasNamespace: HostReplicasNamespace} {
		own := of[rbacv1.RoleBinding](t, objects, "RoleBinding", name)
		if own.Namespace != namespace || own.Subjects[0] != account || own.RoleRef.Kind != "Role" || own.RoleRef.Name != name {
			t.Errorf("in %s, %+v has %+v", own.Namespace, own.Subjects, own.RoleRef)
		}
	}
}

// TestForDNS: the shared DNS lists and watches what names and addresses come
// from, and can do nothing else.
func TestForDNS(t *testing.T) {
	objects, err := For(DNS)
	if err != nil {
		t.Fatal(err)
	}
	bound(t, objects, DNS)
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "pods", "services"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
	}
	if diff := cmp.Diff(want, of[rbacv1.ClusterRole](t, objects, "ClusterRole", DNS).Rules); diff != "" {
		t.Error(diff)
	}
}
