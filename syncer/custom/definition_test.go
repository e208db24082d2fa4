package custom

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// widgets is a definition with two versions, of which the first is stored.
func widgets(change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Description: name},
			},
		}
	}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "widgets.example.com", UID: "super-uid", ResourceVersion: "7", Finalizers: []string{"super"},
			Labels:      map[string]string{"team": "platform"},
			Annotations: map[string]string{"note": "of the platform", apiextensionsv1.KubeAPIApprovedAnnotation: "https://example.com/1"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Scope: apiextensionsv1.NamespaceScoped,
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Namespace: "platform", Name: "converter"},
				}},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1"), version("v1beta1"), version("v1alpha1")},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
	d.Spec.Versions[1].Deprecated, d.Spec.Versions[1].DeprecationWarning = true, new("use v1")
	d.Spec.Versions[2].Served = false
	for _, f := range change {
		f(d)
	}
	return d
}

func TestTenantDefinition(t *testing.T) {
	super := widgets()
	was := super.DeepCopy()
	got, err := tenantDefinition(super, "v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	want := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "widgets.example.com",
			Labels: map[string]string{names.FromSuper: "true"},
			Annotations: map[string]string{
				names.FromSuper: "true", apiextensionsv1.KubeAPIApprovedAnnotation: "https://example.com/1",
			},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:      "example.com",
			Names:      super.Spec.Names,
			Scope:      apiextensionsv1.NamespaceScoped,
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1beta1", Served: true, Storage: true, Schema: super.Spec.Versions[1].Schema},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tenant gets (-want +got):\n%s", diff)
	}
	got.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "scribble"
	got.Spec.Names.Kind = "Scribble"
	if diff := cmp.Diff(was, super); diff != "" {
		t.Errorf("the super cluster's definition, which is shared, changed:\n%s", diff)
	}

	for _, version := range []string{"v1alpha1", "v2", ""} {
		if _, err := tenantDefinition(super, version); err == nil || !strings.Contains(err.Error(), "widgets.example.com") {
			t.Errorf("version %q: %v", version, err)
		}
	}
	plain := widgets(func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations = nil })
	if got, err := tenantDefinition(plain, "v1"); err != nil || len(got.Annotations) != 1 {
		t.Errorf("without an approval: %v, %v", got, err)
	}
}

func TestVersionOf(t *testing.T) {
	d := widgets()
	for _, name := range []string{"v1", "v1beta1"} {
		if v, err := versionOf(d, name); err != nil || v.Name != name {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	for _, name := range []string{"v1alpha1", "v3"} { // one that is not served, one that is not there
		if v, err := versionOf(d, name); err == nil {
			t.Errorf("%s: %v", name, v)
		}
	}
}

func TestEstablished(t *testing.T) {
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Status.Conditions = append(d.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status})
		}
	}
	accepted := condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue)
	for name, tc := range map[string]struct {
		d    *apiextensionsv1.CustomResourceDefinition
		want bool
	}{
		"new":          {widgets(), false},
		"names only":   {widgets(accepted), false},
		"not yet":      {widgets(accepted, condition(apiextensionsv1.Established, apiextensionsv1.ConditionFalse)), false},
		"it is served": {widgets(accepted, condition(apiextensionsv1.Established, apiextensionsv1.ConditionTrue)), true},
		"unknown":      {widgets(condition(apiextensionsv1.Established, apiextensionsv1.ConditionUnknown)), false},
	} {
		if got := established(tc.d); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func customOf(gvk schema.GroupVersionKind, direction tenancyv1alpha1.SyncDirection, namespaced, status bool) kinds.CustomResource {
	return kinds.CustomResource{GVK: gvk, Direction: direction, Namespaced: namespaced, Status: status}
}

func TestCustomResource(t *testing.T) {
	clusterScoped := func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.ClusterScoped }
	withStatus := func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	withScale := func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
	}
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	for name, tc := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		version    string
		direction  tenancyv1alpha1.SyncDirection
		want       kinds.CustomResource
		fails      string
	}{
		"down":                         {widgets(), "v1", tenancyv1alpha1.SyncDown, customOf(gvk, tenancyv1alpha1.SyncDown, true, false), ""},
		"down, with a status":          {widgets(withStatus), "v1", tenancyv1alpha1.SyncDown, customOf(gvk, tenancyv1alpha1.SyncDown, true, true), ""},
		"down, with a scale alone":     {widgets(withScale), "v1", tenancyv1alpha1.SyncDown, customOf(gvk, tenancyv1alpha1.SyncDown, true, false), ""},
		"down, without namespaces":     {widgets(clusterScoped), "v1", tenancyv1alpha1.SyncDown, customOf(gvk, tenancyv1alpha1.SyncDown, false, false), ""},
		"up":                           {widgets(), "v1", tenancyv1alpha1.SyncUp, customOf(gvk, tenancyv1alpha1.SyncUp, true, false), ""},
		"up, without namespaces":       {widgets(clusterScoped, withStatus), "v1", tenancyv1alpha1.SyncUp, customOf(gvk, tenancyv1alpha1.SyncUp, false, true), ""},
		"a version that is not served": {definition: widgets(), version: "v1alpha1", direction: tenancyv1alpha1.SyncUp, fails: "v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			of := tenancyv1alpha1.CustomResourceSync{Group: "example.com", Resource: "widgets", Version: tc.version, Direction: tc.direction}
			got, err := customResource(tc.definition, of)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %v, want an error about %q", err, tc.fails)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tc.want)
			}
			// Tenants would meet in names without namespaces.
			if refused := checkScope(got) != nil; refused != (tc.direction == tenancyv1alpha1.SyncDown && !tc.want.Namespaced) {
				t.Errorf("refused: %t", refused)
			}
		})
	}
}
