package sharedcrds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// widgets returns a CRD with versions, of which the last is stored. Its schemas
// have an object in a list, a map of objects, an embedded resource, lists that
// are a set and a map, a rule for the name, and a subresource with a path.
func widgets(versions ...string) *crd {
	object := schema{Type: "object", Properties: map[string]schema{"color": {Type: "string"}}}
	d := &crd{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}, Spec: spec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
	}}
	for i, name := range versions {
		embedded := *object.DeepCopy()
		embedded.XEmbeddedResource = true
		d.Spec.Versions = append(d.Spec.Versions, version{
			Name: name, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema{Type: "object", Properties: map[string]schema{
				"metadata": {Type: "object", Properties: map[string]schema{"name": {Type: "string", MaxLength: new(int64(9))}}},
				"spec": {Type: "object", Properties: map[string]schema{
					"replicas": {Type: "integer"},
					"parts":    {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: object.DeepCopy()}},
					"byName":   {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: object.DeepCopy()}},
					"template": embedded,
					"tags":     {Type: "array", XListType: new("set"), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}}},
					"ports": {Type: "array", XListType: new("map"), XListMapKeys: []string{"color"}, Items: &apiextensionsv1.JSONSchemaPropsOrArray{
						Schema: &schema{Type: "object", Required: []string{"color"}, Properties: object.DeepCopy().Properties},
					}},
				}},
				"status": {Type: "object", Properties: map[string]schema{"replicas": {Type: "integer"}}},
			}}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
			},
		})
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	return d
}

// withWebhook gives a CRD a conversion webhook.
func withWebhook(d *crd) *crd {
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	return d
}

// shouldBeAccepted validates a change as an apiserver does.
func shouldBeAccepted(t *testing.T, was *crd, now *spec) {
	t.Helper()
	changed := was.DeepCopy()
	changed.Spec = *now.DeepCopy()
	// As the update strategy of an apiserver does.
	changed.Status.StoredVersions = append(changed.Status.StoredVersions, without(storageOf(now), was.Status.StoredVersions)...)
	var old, internal apiextensions.CustomResourceDefinition
	for from, to := range map[*crd]*apiextensions.CustomResourceDefinition{was: &old, changed: &internal} {
		from = from.DeepCopy()
		from.ResourceVersion = "1"
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(from, to, nil); err != nil {
			t.Fatal(err)
		}
	}
	if errs := validation.ValidateCustomResourceDefinitionUpdate(t.Context(), &internal, &old); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func TestTheReplacementIsAcceptedAndKeepsAllFields(t *testing.T) {
	local, system := widgets("v1alpha1", "v1"), widgets("v1", "v2")
	local.Status.StoredVersions = []string{"v1alpha1", "v1"}
	merged := replacementSpec(&system.Spec, "v1", local.Status.StoredVersions)
	shouldBeAccepted(t, local, merged)
	if diff := cmp.Diff([]string{"v1", "v2", "v1alpha1"}, versionNames(merged.Versions)); diff != "" {
		t.Error(diff)
	}
	if kept := merged.Versions[2]; kept.Served || kept.Storage {
		t.Errorf("a version of the tenant is served: %+v", kept)
	}
	root := merged.Versions[0].Schema.OpenAPIV3Schema
	inside := root.Properties["spec"]
	for name, s := range map[string]schema{
		"root": *root, "spec": inside, "parts": *inside.Properties["parts"].Items.Schema,
		"byName": *inside.Properties["byName"].AdditionalProperties.Schema, "template": inside.Properties["template"],
	} {
		if s.XPreserveUnknownFields == nil || !*s.XPreserveUnknownFields || s.XEmbeddedResource || !s.Nullable && name != "root" {
			t.Errorf("%s drops fields", name)
		}
	}
	if system.Spec.Versions[0].Schema.OpenAPIV3Schema.XPreserveUnknownFields != nil {
		t.Error("the super cluster's CRD, which is shared, was changed")
	}
}

func TestTheReplacementStoresTheVersionOfTheTenant(t *testing.T) {
	tests := map[string]struct {
		storage  string
		versions []string
		served   bool
	}{
		"the version that is shared": {"v2", []string{"v1", "v2"}, true},
		"another that is served":     {"v1", []string{"v1", "v2"}, true},
		"one that is not":            {"v1beta1", []string{"v1", "v2", "v1beta1"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			local, system := widgets(tt.storage), widgets("v1", "v2")
			local.Status.StoredVersions = []string{tt.storage}
			got := replacementSpec(&system.Spec, tt.storage, local.Status.StoredVersions)
			shouldBeAccepted(t, local, got)
			if !cmp.Equal(versionNames(got.Versions), tt.versions) || !cmp.Equal(storageOf(got), []string{tt.storage}) {
				t.Errorf("versions %v, stored %v", versionNames(got.Versions), storageOf(got))
			}
			for _, v := range got.Versions {
				if v.Name == tt.storage && v.Served != tt.served {
					t.Errorf("%s is served: %v", v.Name, v.Served)
				}
			}
			back := local.DeepCopy()
			back.Spec = *got
			shouldBeAccepted(t, back, &local.Spec)
		})
	}
}

func TestAReopenedCRDIsAccepted(t *testing.T) {
	replaced, own := widgets("v1", "v2"), widgets("v1beta1")
	replaced.Status.StoredVersions = []string{"v1beta1", "v2"}
	replaced.Spec = *replacementSpec(&replaced.Spec, "v1beta1", replaced.Status.StoredVersions)
	reopened := reopenedSpec(&own.Spec, replaced.Status.StoredVersions)
	shouldBeAccepted(t, replaced, reopened)
	if diff := cmp.Diff([]string{"v1beta1", reopenedGate, "v2"}, versionNames(reopened.Versions)); diff != "" {
		t.Error(diff)
	}
}

func TestARecalledCopyIsAccepted(t *testing.T) {
	copied := widgets("v1", "v2")
	closed := closedSpec(&copied.Spec)
	shouldBeAccepted(t, copied, closed)
	left := unservedSpec(closed)
	shouldBeAccepted(t, copied, left)
	for _, v := range left.Versions {
		if v.Served {
			t.Errorf("%s is served", v.Name)
		}
	}
	if gate := closed.Versions[2]; gate.Name != closedGate || !gate.Served || !equal(closedSpec(closed), closed) {
		t.Errorf("closed with the versions %v", versionNames(closed.Versions))
	}
	if diff := cmp.Diff(storageOf(&copied.Spec), storageOf(left)); diff != "" {
		t.Error(diff)
	}
}

func TestACopyHasNoWebhook(t *testing.T) {
	got := copySpec(&withWebhook(widgets("v1", "v2")).Spec)
	if converts(got) || !cmp.Equal(versionNames(got.Versions), []string{"v2"}) {
		t.Errorf("conversion %v, versions %v", got.Conversion, versionNames(got.Versions))
	}
}

func TestCheckSwap(t *testing.T) {
	changed := func(change func(*crd)) *crd {
		d := widgets("v1")
		change(d)
		return d
	}
	tests := map[string]struct {
		tenant, system *crd
		possible       bool
	}{
		"the same":               {widgets("v1"), widgets("v1"), true},
		"other versions":         {widgets("v1alpha1"), widgets("v1"), true},
		"another scope":          {changed(func(d *crd) { d.Spec.Scope = apiextensionsv1.ClusterScoped }), widgets("v1"), false},
		"another kind":           {changed(func(d *crd) { d.Spec.Names.Kind = "Gadget" }), widgets("v1"), false},
		"another resource":       {changed(func(d *crd) { d.Spec.Names.Plural = "gadgets" }), widgets("v1"), false},
		"the tenant's webhook":   {withWebhook(widgets("v1")), widgets("v1"), false},
		"unstructured":           {changed(func(d *crd) { d.Spec.PreserveUnknownFields = true }), widgets("v1"), false},
		"a reserved version":     {widgets(closedGate, "v1"), widgets("v1"), false},
		"one that is shared":     {widgets("v1"), widgets(reopenedGate, "v1"), false},
		"no stored version":      {changed(func(d *crd) { d.Spec.Versions[0].Storage = false }), widgets("v1"), false},
		"no version":             {changed(func(d *crd) { d.Spec.Versions = nil }), widgets("v1"), false},
		"too many versions":      {changed(func(d *crd) { d.Status.StoredVersions = make([]string, maxVersions+1) }), widgets("v1"), false},
		"webhook, same version":  {widgets("v1"), withWebhook(widgets("v1")), true},
		"webhook, other version": {widgets("v1alpha1"), withWebhook(widgets("v1")), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := checkSwap(tt.tenant, tt.system); (err == nil) != tt.possible {
				t.Errorf("%v", err)
			}
		})
	}
}
