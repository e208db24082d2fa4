package kinds_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

func TestTable(t *testing.T) {
	seen := map[schema.GroupResource]bool{}
	for _, kind := range kinds.All() {
		name := kind.GroupResource()
		if seen[name] {
			t.Errorf("%s is in the table twice", name)
		}
		seen[name] = true
		if kind.Kind == "" || kind.Resource == "" {
			t.Errorf("%s has no kind or no resource", name)
		}
		if kind.Served() && (kind.Class == kinds.Shelved) != kind.IsStored() {
			t.Errorf("%s is %s, and stored as %s", name, kind.Class, kind.StoredAs("v1"))
		}
		if kind.IsStored() && kind.Stored.InRoot == kind.Namespaced() {
			t.Errorf("%s has a namespace: %t, and is in the root namespace: %t", name, kind.Namespaced(), kind.Stored.InRoot)
		}
		if kind.Class == kinds.Refused && kind.Served() {
			t.Errorf("%s is refused without a reason", name)
		}
		if (kind.Class == kinds.Shown) != (len(kind.Verbs) > 0 && kind.ReadOnly != "") {
			t.Errorf("%s is %s, with the verbs %q and the reason %q", name, kind.Class, kind.Verbs, kind.ReadOnly)
		}
		for sub, subresource := range kind.Subresources {
			if subresource.Form == "" && subresource.Reason == "" {
				t.Errorf("%s/%s is refused without a reason", name, sub)
			}
		}
		if found, ok := kinds.FindKind(kind.Group, kind.Kind); !ok || found.Resource != kind.Resource {
			t.Errorf("the kind %s of %s leads to %s, %t", kind.Kind, name, found.Resource, ok)
		}
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		group, resource string
		class           kinds.Class
		served          bool
	}{
		{"", "pods", kinds.Placed, true},
		{"", "namespaces", kinds.Prefixed, true},
		{"", "nodes", kinds.Shown, true},
		{"networking.k8s.io", "servicecidrs", kinds.Shelved, true},
		{"resource.k8s.io", "devicetaintrules", kinds.Refused, false},
		{"rbac.authorization.k8s.io", "clusterroles", kinds.Shelved, true},
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", kinds.Shelved, true},
		{"shelved.tenancy.x-k8s.io", "clusterroles", kinds.Refused, false},
		{"authorization.k8s.io", "selfsubjectaccessreviews", kinds.Answered, true},
		{"apiextensions.k8s.io", "customresourcedefinitions", kinds.Prefixed, true},
		{"apiregistration.k8s.io", "apiservices", kinds.Shown, true},
		{"certificates.k8s.io", "certificatesigningrequests", kinds.Shelved, true},
		{"example.com", "widgets", kinds.Refused, false},
		{"apps", "pods", kinds.Refused, false},
	} {
		if got := kinds.Find(tt.group, tt.resource); got.Class != tt.class || got.Served() != tt.served {
			t.Errorf("%s.%s is %s, served %t", tt.resource, tt.group, got.Class, got.Served())
		}
	}
}

// TestFields: the rules of templates are where pods are created from.
func TestFields(t *testing.T) {
	for path, of := range map[string]kinds.Kind{
		"spec":                           kinds.Find("", "pods"),
		"spec.template.spec":             kinds.Find("apps", "deployments"),
		"spec.jobTemplate.spec.template": kinds.Find("batch", "cronjobs"),
		"template.spec":                  kinds.Find("", "podtemplates"),
	} {
		field := of.Fields()
		for step := range strings.SplitSeq(path, ".") {
			if field = field.Fields[step]; field == nil {
				t.Fatalf("%s has no rules at %s of %s", of.GroupResource(), step, path)
			}
		}
	}
	owners := kinds.Find("", "namespaces").Fields().Fields["metadata"].Fields["ownerReferences"]
	if owners.Rule.Means != kinds.Hidden || owners.Items != nil {
		t.Errorf("the owners of a Namespace have the rule %v, and elements %v", owners.Rule, owners.Items)
	}
}
