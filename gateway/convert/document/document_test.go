package document_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const key = "team-0a1b2c-red"

// index knows the namespaces shop and other of the tenant.
type index struct{}

func (index) TenantName(of, super string) (string, bool) {
	for _, tenant := range []string{"shop", "other"} {
		if of == key && super == names.SuperNamespace(key, tenant) {
			return tenant, true
		}
	}
	return "", false
}

var namer = naming.Namer{Key: key, Namespaces: index{}}

// sample returns a value of a field with all fields that have rules.
func sample(t *testing.T, field *kinds.Field) any {
	t.Helper()
	if field.Items != nil {
		return []any{sample(t, field.Items)}
	}
	if field.Rule.Means == "" {
		object := document.Object{"untouched": key}
		for name, child := range field.Fields {
			if child.Rule.Means != kinds.RootNamespace { // the tenant has none
				object[name] = sample(t, child)
			}
		}
		return object
	}
	if field.Rule.Means == kinds.TypeVersion {
		return field.Rule.Tenant
	}
	value, ok := samples()[field.Rule.Means]
	if !ok {
		t.Fatalf("the test has no sample of a field that holds %s", field.Rule.Means)
	}
	return value
}

func samples() map[kinds.Means]any {
	labels := document.Object{"app": "web", "example.com/a": "b", "labels.tenancy.example.com/a": ""}
	ofNamespace := document.Object{
		"app": "web", "kubernetes.io/metadata.name": "shop", "pod-security.kubernetes.io/enforce": "privileged",
	}
	selector := document.Object{
		"matchLabels": document.Object{"kubernetes.io/metadata.name": "other", "team": "a"},
		"matchExpressions": []any{
			document.Object{"key": "kubernetes.io/metadata.name", "operator": "In", "values": []any{"shop", "missing"}},
			document.Object{"key": "pod-security.kubernetes.io/enforce", "operator": "Exists"},
			document.Object{"key": "tier", "operator": "NotIn", "values": []any{"web"}},
		},
	}
	managed := []any{document.Object{"manager": "kubectl", "apiVersion": "example.com/v1", "fieldsV1": document.Object{
		"f:metadata": document.Object{"f:labels": document.Object{".": document.Object{}, "f:app": document.Object{}}},
		"f:spec":     document.Object{"f:replicas": document.Object{}},
	}}}
	return map[kinds.Means]any{
		kinds.ConversionClient: document.Object{"service": document.Object{"namespace": "shop", "name": "a", "port": int64(443)}},
		kinds.OwnPodSelector: document.Object{
			"matchLabels":      document.Object{"app": "web"},
			"matchExpressions": []any{document.Object{"key": "tier", "operator": "Exists"}},
		},
		kinds.Audience: "vault", kinds.FieldPath: "metadata.namespace",
		kinds.OwnNamespace: "shop", kinds.NamespaceName: "other", kinds.NamespaceSelector: selector,
		kinds.Labels: labels, kinds.NamespaceLabels: ofNamespace,
		kinds.Owner:         document.Object{"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": "1-2-3"},
		kinds.ManagedFields: managed, kinds.ManagedNamespaceFields: managed,
		kinds.APIVersion: "example.com/v1", kinds.CRDName: "widgets.example.com", kinds.CRDGroup: "example.com",
		kinds.Text:       `back-off pulling image "a"`,
		kinds.VolumeName: "pvc-6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b",
		kinds.StoredName: "system:Node", kinds.Reference: document.Object{"kind": "ServiceAccount", "name": "a", "namespace": "shop"},
		kinds.RootOwner:  document.Object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "a:b", "uid": "1-2-3"},
		kinds.SecretType: "Opaque", kinds.Unserved: false, kinds.Hidden: []any{},
	}
}

// clone returns a copy of a value.
func clone(t testing.TB, value any) document.Object {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	object, err := document.ParseTrusted(data)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func response(kind kinds.Kind) *document.Response {
	return &document.Response{
		Namer: namer, Kind: kind, Fields: kind.Fields(), Seal: func(token string) string { return "sealed " + token },
	}
}

func listResponse(kind kinds.Kind) *document.Response {
	r := response(kind)
	r.Many = true
	return r
}

// TestRoundTrips: a document of each kind that names something in each field
// with a rule is the same after it was converted down and up.
func TestRoundTrips(t *testing.T) {
	all := append(kinds.All(), kinds.Custom("example.com", "widgets", "Widget", true), kinds.Custom("example.com", "gadgets", "Gadget", false))
	for _, kind := range all {
		if !kind.Served() || kind.Class == kinds.Answered {
			continue
		}
		t.Run(kind.GroupResource().String(), func(t *testing.T) {
			want := sample(t, kind.Fields()).(document.Object)
			object := clone(t, want)
			if kind.IsNamespace() { // an empty list turns back into none
				delete(want["metadata"].(document.Object), "ownerReferences")
			}
			if kind.IsCRD() {
				hookIn(t, object)
			}
			if err := document.Down(namer, kind.Fields(), object); err != nil {
				t.Fatal(err)
			}
			metadata := object["metadata"].(document.Object)
			if !kind.Stored.InRoot && metadata["namespace"] != names.SuperNamespace(key, "shop") {
				t.Errorf("the namespace in the super cluster is %v", metadata["namespace"])
			}
			if data, _ := document.Write(object); kind.IsStored() && strings.Contains(string(data), `"apiVersion":"`+schema.GroupVersion{Group: kind.Group, Version: "v1"}.String()+`"`) {
				t.Errorf("the tenant's type is left in %s", data)
			}
			if kind.IsCustom() && object["apiVersion"] != names.ConvertedGroup(key)+"example.com/v1" {
				t.Errorf("the API version in the super cluster is %v", object["apiVersion"])
			}
			// The super cluster adds these to every object.
			metadata["labels"].(document.Object)[names.Converted] = key
			metadata["annotations"].(document.Object)[names.Namespace] = "shop"
			if err := response(kind).Up(object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, object); diff != "" {
				t.Errorf("down and up (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoSuperName: no name of the super cluster is left in the fields of an
// object with rules.
func TestNoSuperName(t *testing.T) {
	pod := clone(t, map[string]any{
		"kind": "Pod",
		"metadata": map[string]any{
			"namespace": key + "-shop", "labels": map[string]any{names.Converted: key},
			"annotations": map[string]any{names.Namespace: "shop"},
			"managedFields": []any{map[string]any{"fieldsV1": map[string]any{
				"f:metadata": map[string]any{"f:labels": map[string]any{"f:" + names.Converted: map[string]any{}}},
			}}},
		},
		"status": map[string]any{
			"message":           "in " + key + "-shop",
			"conditions":        []any{map[string]any{"message": "key a of " + key + "-shop/settings"}},
			"containerStatuses": []any{map[string]any{"state": map[string]any{"waiting": map[string]any{"message": key + "-shop/settings"}}}},
		},
	})
	if err := response(kinds.Find("", "pods")).Up(pod); err != nil {
		t.Fatal(err)
	}
	want := clone(t, map[string]any{
		"kind":     "Pod",
		"metadata": map[string]any{"namespace": "shop", "managedFields": []any{map[string]any{"fieldsV1": map[string]any{}}}},
		"status": map[string]any{
			"message":           "in shop",
			"conditions":        []any{map[string]any{"message": "key a of shop/settings"}},
			"containerStatuses": []any{map[string]any{"state": map[string]any{"waiting": map[string]any{"message": "shop/settings"}}}},
		},
	})
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSelectorsAreNarrowed(t *testing.T) {
	policy := clone(t, map[string]any{"spec": map[string]any{"ingress": []any{map[string]any{"from": []any{
		map[string]any{"namespaceSelector": map[string]any{}}, map[string]any{"namespaceSelector": nil},
	}}}}})
	kind := kinds.Find("networking.k8s.io", "networkpolicies")
	if err := document.Down(namer, kind.Fields(), policy); err != nil {
		t.Fatal(err)
	}
	data, _ := document.Write(policy)
	want := `{"spec":{"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"` + names.Converted + `":"` + key +
		`"}}},{"namespaceSelector":null}]}]}}`
	if string(data) != want {
		t.Errorf("got %s\nwant %s", data, want)
	}
}

func TestDownRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ group, resource, document, want string }{
		"a reserved label":        {"", "pods", `{"metadata":{"labels":{"tenancy.x-k8s.io/converted":"x"}}}`, "metadata.labels.tenancy.x-k8s.io/converted: labels"},
		"no reserved label":       {"", "pods", `{"metadata":{"labels":{"tenancy.x-k8s.io/converted":null}}}`, "the platform's"},
		"a reserved annotation":   {"", "configmaps", `{"metadata":{"annotations":{"tenancy.x-k8s.io/namespace":"x"}}}`, "the platform's"},
		"one in a template":       {"apps", "deployments", `{"spec":{"template":{"metadata":{"labels":{"labels.tenancy.x-k8s.io/a":"x"}}}}}`, "spec.template.metadata.labels"},
		"one in a selector":       {"networking.k8s.io", "networkpolicies", `{"spec":{"egress":[{"to":[{"namespaceSelector":{"matchExpressions":[{"key":"tenancy.x-k8s.io/converted","operator":"Exists"}]}}]}]}}`, "the platform's"},
		"an audience of no text":  {"", "pods", `{"spec":{"volumes":[{"projected":{"sources":[{"serviceAccountToken":{"audience":[]}}]}}]}}`, "spec.volumes.0.projected.sources.0.serviceAccountToken.audience: the value has another type"},
		"the platform's in env":   {"batch", "cronjobs", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"env":[{"valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['tenancy.x-k8s.io/converted']"}}}]}]}}}}}}`, "the platform's"},
		"a Secret with a token":   {"", "secrets", `{"type":"kubernetes.io/service-account-token"}`, "a token without an end"},
		"a foreign owner":         {"", "configmaps", `{"metadata":{"ownerReferences":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","name":"admin","uid":"1"}]}}`, "not in the same namespace"},
		"a review as owner":       {"", "configmaps", `{"metadata":{"ownerReferences":[{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","name":"a","uid":"1"}]}}`, "is not served"},
		"an owner in a namespace": {"rbac.authorization.k8s.io", "clusterroles", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1"}]}}`, "not in the same namespace"},
		"an object of the shelf":  {"rbac.authorization.k8s.io", "roles", `{"apiVersion":"shelved.tenancy.x-k8s.io/v1"}`, "does not match the expected API version (rbac.authorization.k8s.io/v1)"},
		"a name with a slash":     {"rbac.authorization.k8s.io", "roles", `{"metadata":{"name":"a/b"}}`, "may not contain '/'"},
		"a role with a long name": {"rbac.authorization.k8s.io", "roles", `{"metadata":{"name":"` + strings.Repeat(":", 157) + `"}}`, "no more than 156 bytes"},
		"an unknown owner":        {"", "configmaps", `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Widget","name":"a","uid":"1"}]}}`, "Widget is not served"},
		"an owner of no version":  {"", "configmaps", `{"metadata":{"ownerReferences":[{"apiVersion":"a/b/c","kind":"Widget","name":"a","uid":"1"}]}}`, "Widget is not served"},
		"a CRD without a group":   {"apiextensions.k8s.io", "customresourcedefinitions", `{"metadata":{"name":"widgets"}}`, "a dot, and spec.group"},
		"a CRD in a native group": {"apiextensions.k8s.io", "customresourcedefinitions", `{"spec":{"group":"apps"}}`, "Kubernetes' own"},
		"a CRD in no domain":      {"apiextensions.k8s.io", "customresourcedefinitions", `{"spec":{"group":"example"}}`, "at least one dot"},
		"a conversion webhook":    {"apiextensions.k8s.io", "customresourcedefinitions", `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{}}}}}`, "spec.conversion.webhook.clientConfig: the configuration of a conversion webhook cannot be changed in this way"},
		"a version of a number":   {"autoscaling", "horizontalpodautoscalers", `{"spec":{"scaleTargetRef":{"apiVersion":1}}}`, "another type"},
		"a volume":                {"", "persistentvolumeclaims", `{"spec":{"volumeName":"data"}}`, "spec.volumeName"},
		"a volume of a template":  {"apps", "statefulsets", `{"spec":{"volumeClaimTemplates":[{"spec":{"volumeName":"data"}}]}}`, "spec.volumeClaimTemplates.0.spec.volumeName"},
		"a list for an object":    {"", "pods", `{"metadata":[]}`, "metadata: the value has another type"},
		"an object for a name":    {"", "pods", `{"metadata":{"namespace":{"a":"b"}}}`, "another type"},
		"a text for labels":       {"", "pods", `{"metadata":{"labels":"a"}}`, "another type"},
		"a name of no namespace":  {"", "pods", `{"metadata":{"namespace":"a/b"}}`, `namespace "a/b"`},
		"an affinity to a number": {"", "pods", `{"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"namespaces":[1]}]}}}}`, "another type"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := document.Parse([]byte(tt.document))
			if err != nil {
				t.Fatal(err)
			}
			err = document.Down(namer, kinds.Find(tt.group, tt.resource).Fields(), object)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), key) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ document, want string }{
		"a key twice":       {`{"metadata":{"name":"a","name":"b"}}`, "duplicate"},
		"an escaped key":    {`{"metadata":{"name":"a","nam\u0065":"b"}}`, "duplicate"},
		"a list":            {`[]`, "not a JSON object"},
		"null":              {`null`, "not a JSON object"},
		"deep nesting":      {`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "levels deep"},
		"a second document": {`{} {}`, "parse the document"},
		"a large document":  {`{"a":"` + strings.Repeat("x", document.MaxBytes) + `"}`, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := document.Parse([]byte(tt.document)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := document.Parse([]byte(`{"a":"` + strings.Repeat(`[{\"`, 500) + `"}`)); err != nil {
		t.Errorf("brackets in a text: %v", err)
	}
}

func TestStatusAndTable(t *testing.T) {
	status := clone(t, map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{"continue": "c"}, "message": `namespaces "` + key + `-new" not found`,
		"details": map[string]any{"name": key + "-new", "kind": "namespaces", "causes": []any{map[string]any{"message": "in " + key + "-new", "field": "metadata.name"}}},
	})
	if err := response(kinds.Find("", "pods")).Up(status); err != nil {
		t.Fatal(err)
	}
	want := clone(t, map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{"continue": "sealed c"}, "message": `namespaces "new" not found`,
		"details": map[string]any{"name": "new", "kind": "namespaces", "causes": []any{map[string]any{"message": "in new", "field": "metadata.name"}}},
	})
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("Status (-want +got):\n%s", diff)
	}

	table := func(name string) document.Object {
		return clone(t, map[string]any{
			"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": []any{map[string]any{"name": "Name"}, map[string]any{"name": "Age"}},
			"rows": []any{map[string]any{"cells": []any{name, "1d"}, "object": map[string]any{"metadata": map[string]any{"name": name}}}},
		})
	}
	got, of := table(key+"-shop"), response(kinds.Find("", "namespaces"))
	if err := of.Up(got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table("shop"), got); diff != "" {
		t.Errorf("Table (-want +got):\n%s", diff)
	}
	// The Tables of a watch name their columns once.
	next, wanted := table(key+"-other"), table("other")
	delete(next, "columnDefinitions")
	delete(wanted, "columnDefinitions")
	if err := of.Up(next); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, next); diff != "" {
		t.Errorf("second Table (-want +got):\n%s", diff)
	}
}

func TestListOfAnother(t *testing.T) {
	list := clone(t, map[string]any{
		"kind": "PodList", "metadata": map[string]any{"resourceVersion": "7"},
		"items": []any{map[string]any{"metadata": map[string]any{"namespace": key + "-shop"}}, map[string]any{"metadata": map[string]any{"namespace": "blue-shop"}}},
	})
	if err := listResponse(kinds.Find("", "pods")).Up(list); err == nil {
		t.Error("an object of another tenant was converted")
	} else if strings.Contains(err.Error(), "blue") {
		t.Errorf("the error shows the namespace: %v", err)
	}
}

// hasLongNames reports whether a name in a text could be shortened.
func hasLongNames(text string) bool {
	return slices.ContainsFunc(strings.Split(text, `"`), func(part string) bool { return len(part) > 40 })
}

// FuzzDocuments: a document that is accepted has the tenant's own namespace or
// none, in all places, and turns back into itself.
func FuzzDocuments(f *testing.F) {
	f.Add(`{"metadata":{"namespace":"shop","labels":{"a":"b"}},"spec":{"affinity":{"podAffinity":null},"volumes":[{"projected":{"sources":[{"serviceAccountToken":false}]}}]}}`)
	f.Add(`{"metadata":{"labels":{"$patch":"replace"},"$setElementOrder/ownerReferences":[{"uid":"1"}]}}`)
	f.Add(`{"metadata":null,"status":{"conditions":[{"message":1}]}}`)
	kind := kinds.Find("", "pods")
	f.Fuzz(func(t *testing.T, text string) {
		object, err := document.Parse([]byte(text))
		if err != nil || strings.Contains(text, "matchLabels") || hasLongNames(text) {
			return // an empty map of labels turns back into none, and a shortened name only by the index
		}
		want := clone(t, object)
		if document.Down(namer, kind.Fields(), object) != nil {
			return
		}
		if namespace := object["metadata"]; namespace != nil {
			own, given := namespace.(document.Object)["namespace"].(string)
			if given && own != "" && !strings.HasPrefix(own, key+"-") && len(own) < 63 {
				t.Errorf("the namespace in the super cluster is %q", own)
			}
		}
		if _, isStatus := object["kind"]; isStatus || strings.Contains(text, key) || response(kind).Up(object) != nil {
			return
		}
		if diff := cmp.Diff(want, object); diff != "" {
			t.Errorf("down and up (-want +got):\n%s", diff)
		}
	})
}

// TestStored: what the super cluster says of a shelved object names the tenant's
// type and object.
func TestStored(t *testing.T) {
	kind := kinds.Find("rbac.authorization.k8s.io", "clusterroles")
	status := clone(t, map[string]any{
		"kind": "Status", "apiVersion": "v1", "message": `clusterroles.shelved.tenancy.x-k8s.io "x--c4t64" not found`,
		"details": map[string]any{"name": "x--c4t64", "group": "shelved.tenancy.x-k8s.io", "kind": "clusterroles"},
	})
	list := clone(t, map[string]any{
		"kind": "ClusterRoleList", "apiVersion": "shelved.tenancy.x-k8s.io/v1", "items": []any{map[string]any{
			"apiVersion": "shelved.tenancy.x-k8s.io/v1", "metadata": map[string]any{
				"name":            "x--c4t64",
				"managedFields":   []any{map[string]any{"apiVersion": "shelved.tenancy.x-k8s.io/v1"}},
				"ownerReferences": []any{map[string]any{"apiVersion": "shelved.tenancy.x-k8s.io/v1", "kind": "ClusterRole", "name": "x--c4t64"}},
			},
		}},
	})
	finished := 0
	of := listResponse(kind)
	of.Finish = func(document.Object) error { finished++; return nil }
	for _, object := range []document.Object{status, list} {
		if err := of.Up(object); err != nil {
			t.Fatal(err)
		}
		data, err := document.Write(object)
		if err != nil || strings.Contains(string(data), "shelved") || strings.Contains(string(data), "x--") || !strings.Contains(string(data), `a:b`) {
			t.Errorf("the tenant gets %s, %v", data, err)
		}
	}
	if finished != 1 {
		t.Errorf("%d documents were finished, want the list alone", finished)
	}
	object := clone(t, map[string]any{"subjects": []any{map[string]any{"kind": "User", "name": "a"}, nil}, "metadata": map[string]any{"labels": nil}})
	document.DropNulls(object)
	if err := document.Down(namer, kinds.Find("rbac.authorization.k8s.io", "rolebindings").Fields(), object); err != nil {
		t.Fatal(err)
	}
	want := clone(t, map[string]any{
		"subjects": []any{map[string]any{"kind": "User", "name": "a", "apiGroup": "rbac.authorization.k8s.io"}, nil}, "metadata": map[string]any{},
	})
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("the defaults of a binding (-want +got):\n%s", diff)
	}
}
