package translate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

const nameLabel = "kubernetes.io/metadata.name"

func TestNamespaceSelector(t *testing.T) {
	ours := stampedLabels
	tests := map[string]struct{ selector, want *metav1.LabelSelector }{
		"none stays none": {nil, nil},
		"all of them are all of the tenant's": {
			&metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: ours(nil)},
		},
		"labels by the keys of the copies": {
			&metav1.LabelSelector{MatchLabels: pairs{"team": "shop"}},
			&metav1.LabelSelector{MatchLabels: ours(pairs{"labels.tenancy.x-k8s.io/team": "shop"})},
		},
		"a namespace by its name": {
			&metav1.LabelSelector{MatchLabels: pairs{nameLabel: "shop"}},
			&metav1.LabelSelector{MatchLabels: ours(pairs{nameLabel: "team-71a1c3-blue-shop"})},
		},
		"names in expressions, and nothing else in them": {
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: nameLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{"shop", longNamespace}},
				{Key: nameLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"till"}},
				{Key: nameLabel, Operator: metav1.LabelSelectorOpExists},
				{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"shop"}},
			}},
			&metav1.LabelSelector{MatchLabels: ours(nil), MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: nameLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{
					"team-71a1c3-blue-shop", blue.SuperNamespace(longNamespace),
				}},
				{Key: nameLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"team-71a1c3-blue-till"}},
				{Key: nameLabel, Operator: metav1.LabelSelectorOpExists},
				{Key: "labels.tenancy.x-k8s.io/team", Operator: metav1.LabelSelectorOpIn, Values: []string{"shop"}},
			}},
		},
		"a tenant cannot select another's namespaces": {
			&metav1.LabelSelector{MatchLabels: pairs{
				"tenancy.x-k8s.io/vcname": "green", "tenancy.x-k8s.io/vcnamespace": "others",
			}},
			&metav1.LabelSelector{MatchLabels: ours(pairs{
				"labels.tenancy.x-k8s.io/tenancy.x-k8s.io_vcname":      "green",
				"labels.tenancy.x-k8s.io/tenancy.x-k8s.io_vcnamespace": "others",
			})},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			was := tt.selector.DeepCopy()
			got := blue.NamespaceSelector(tt.selector)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
			scribbleSelector(got)
			if diff := cmp.Diff(was, tt.selector); diff != "" {
				t.Errorf("the tenant's selector changed with what was returned (-before +after):\n%s", diff)
			}
		})
	}
}

// scribbleSelector overwrites all the memory that a selector can reach.
func scribbleSelector(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	clear(s.MatchLabels)
	for i := range s.MatchExpressions {
		clear(s.MatchExpressions[i].Values)
	}
	clear(s.MatchExpressions)
}

// superLabels returns the labels of a tenant's namespace in the super cluster,
// where the apiserver adds the name.
func superLabels(t Tenant, name string, own pairs) labels.Set {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: own}}
	key := superKey
	key.Namespace, key.Name = "", t.SuperNamespace(name)
	set := t.Down("Namespace", ns, key).Labels
	set[nameLabel] = key.Name
	return set
}

// tenantLabels returns the labels of a namespace in its tenant, where the
// apiserver adds the name.
func tenantLabels(name string, own pairs) labels.Set {
	set := labels.Set{nameLabel: name}
	for k, v := range own {
		if k != nameLabel {
			set[k] = v
		}
	}
	return set
}

// FuzzNamespaceSelector checks that the translation of a selector selects the
// copies of the tenant's namespaces that the selector selects, and no other
// namespace of the super cluster, whatever labels its owner sets.
func FuzzNamespaceSelector(f *testing.F) {
	f.Add("team", "shop", "team", "In", "shop,till", "shop", "team", "shop")
	f.Add(nameLabel, "shop", nameLabel, "In", "shop,till", "shop", "team", "shop")
	f.Add(nameLabel, "shop", nameLabel, "NotIn", "till", "shop", "", "")
	f.Add("", "", nameLabel, "NotIn", "team-71a1c3-blue-shop", "shop", "", "")
	f.Add("", "", "team", "DoesNotExist", "", "shop", "", "")
	f.Add("", "", nameLabel, "Exists", "", longNamespace, "", "")
	f.Add("tenancy.x-k8s.io/vcname", "green", "tenancy.x-k8s.io/vcname", "In", "green", "shop", "tenancy.x-k8s.io/vcname", "green")
	f.Add("", "", "tenancy.x-k8s.io/vcname", "NotIn", "blue", "shop", "tenancy.x-k8s.io/vcname", "blue")

	green := Tenant{Key: "others-c57de1-green", Name: "green", Namespace: "others"}
	// Tenants with the same name elsewhere, and with another name in the same
	// namespace, are other tenants.
	namesake := Tenant{Key: "others-aaaaaa-blue", Name: "blue", Namespace: "others"}
	neighbour := Tenant{Key: "team-bbbbbb-green", Name: "green", Namespace: "team"}

	f.Fuzz(func(t *testing.T, key, value, expressionKey, operator, values, namespace, labelKey, labelValue string) {
		selector := selectorOf(key, value, expressionKey, operator, values)
		tenants, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || namespace == "" {
			t.Skip("not a valid selector")
		}
		supers, err := metav1.LabelSelectorAsSelector(blue.NamespaceSelector(selector))
		if err != nil {
			t.Fatalf("%v becomes an invalid selector: %v", selector, err)
		}
		own := pairs{labelKey: labelValue}
		for _, other := range []Tenant{green, namesake, neighbour} {
			if set := superLabels(other, namespace, own); supers.Matches(set) {
				t.Errorf("%v becomes %v, which selects the labels %v of another tenant's namespace", selector, supers, set)
			}
		}
		if set := labels.Merge(labels.Set(own), labels.Set{nameLabel: namespace}); labelKey != "tenancy.x-k8s.io/vcname" && supers.Matches(set) {
			t.Errorf("%v becomes %v, which selects the labels %v of the super cluster's own namespace", selector, supers, set)
		}
		in, down := tenants.Matches(tenantLabels(namespace, own)), supers.Matches(superLabels(blue, namespace, own))
		if in != down {
			t.Errorf("%v selects namespace %q with labels %v in the tenant: %t; and in the super cluster: %t",
				selector, namespace, own, in, down)
		}
	})
}

func TestUnselectable(t *testing.T) {
	selective := blue
	selective.Opaque, selective.Transparent = []string{"opaque.io/"}, []string{"transparent.io/"}
	exists := func(keys ...string) []metav1.LabelSelectorRequirement {
		var all []metav1.LabelSelectorRequirement
		for _, key := range keys {
			all = append(all, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists})
		}
		return all
	}
	tests := map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"no selector":                 {nil, nil},
		"all":                         {&metav1.LabelSelector{}, nil},
		"labels that are synced down": {&metav1.LabelSelector{MatchLabels: pairs{"app": "web"}, MatchExpressions: exists("example.com/tier")}, nil},
		"a label that stays":          {&metav1.LabelSelector{MatchLabels: pairs{"opaque.io/a": "1"}}, []string{"opaque.io/a"}},
		"one that is synced up":       {&metav1.LabelSelector{MatchExpressions: exists("transparent.io/a")}, nil},
		"the name of namespace":       {&metav1.LabelSelector{MatchLabels: pairs{nameLabel: "shop"}}, nil},
		"each once, in order": {
			&metav1.LabelSelector{MatchLabels: pairs{"opaque.io/c": ""}, MatchExpressions: exists("opaque.io/b", "opaque.io/c")},
			[]string{"opaque.io/b", "opaque.io/c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for what, got := range map[string][]string{
				"pods": selective.UnselectablePods(tt.selector), "namespaces": selective.UnselectableNamespaces(tt.selector),
			} {
				if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("labels of %s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

func TestPodSelector(t *testing.T) {
	selective := blue
	selective.Opaque, selective.Transparent = []string{"opaque.io/"}, []string{"transparent.io/"}
	selector := &metav1.LabelSelector{
		MatchLabels: pairs{"app": "web", "example.com/tier": "front", "opaque.io/a": "1"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "transparent.io/a", Operator: metav1.LabelSelectorOpExists},
			{Key: "tenancy.x-k8s.io/vcname", Operator: metav1.LabelSelectorOpIn, Values: []string{"green"}},
		},
	}
	was := selector.DeepCopy()
	want := &metav1.LabelSelector{
		MatchLabels: pairs{
			"app": "web", "labels.tenancy.x-k8s.io/example.com_tier": "front", "labels.tenancy.x-k8s.io/opaque.io_a": "1",
		},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "transparent.io/a", Operator: metav1.LabelSelectorOpExists},
			{Key: "labels.tenancy.x-k8s.io/tenancy.x-k8s.io_vcname", Operator: metav1.LabelSelectorOpIn, Values: []string{"green"}},
		},
	}
	got := selective.PodSelector(selector)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.MatchLabels, selective.PodLabels(selector.MatchLabels)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	scribbleSelector(got)
	if diff := cmp.Diff(was, selector); diff != "" {
		t.Errorf("the tenant's selector changed with what was returned (-before +after):\n%s", diff)
	}
	if blue.PodSelector(nil) != nil || blue.PodLabels(nil) != nil {
		t.Error("no selector becomes one")
	}
}

// selectorOf returns a selector with an expression, and with a label unless its
// key is empty. The values are separated by commas.
func selectorOf(key, value, expressionKey, operator, values string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: expressionKey, Operator: metav1.LabelSelectorOperator(operator),
	}}}
	if values != "" {
		selector.MatchExpressions[0].Values = strings.Split(values, ",")
	}
	if key != "" {
		selector.MatchLabels = pairs{key: value}
	}
	return selector
}

// FuzzPodSelector checks that the translation of a selector selects the copies
// of the tenant's pods that the selector selects, under any policy.
func FuzzPodSelector(f *testing.F) {
	f.Add("app", "web", "example.com/tier", "In", "front,back", "example.com/tier", "front", "")
	f.Add("a_b", "1", "a/b", "DoesNotExist", "", "a_b", "1", "a")
	f.Add("", "", "labels.tenancy.x-k8s.io/a_b", "Exists", "", "a/b", "", "labels.tenancy.x-k8s.io/")
	f.Add("tenancy.x-k8s.io/vcname", "green", "app", "NotIn", "web", "tenancy.x-k8s.io/vcname", "green", "tenancy.x-k8s.io/")
	f.Add("aadpodidbinding", "admin", "aadpodidbinding", "Exists", "", "aadpodidbinding", "admin", "aad*")
	f.Fuzz(func(t *testing.T, key, value, expressionKey, operator, values, labelKey, labelValue, allowed string) {
		tenant := blue
		tenant.Sync.Metadata = []tenancyv1alpha1.MetadataSync{{Kinds: []string{"Pod"}, Labels: []string{allowed}}}
		selector := selectorOf(key, value, expressionKey, operator, values)
		tenants, err := metav1.LabelSelectorAsSelector(selector)
		own := pairs{labelKey: labelValue}
		if err != nil || len(validation.IsQualifiedName(labelKey)) > 0 {
			t.Skip("not a valid selector")
		}
		for _, k := range []string{key, expressionKey, labelKey} {
			if tenant.isSupers("Pod", k) {
				t.Skip("the super cluster's own")
			}
		}
		supers, err := metav1.LabelSelectorAsSelector(tenant.PodSelector(selector))
		if err != nil {
			t.Fatalf("%v becomes an invalid selector: %v", selector, err)
		}
		copied := tenant.Down("Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: own}}, superKey).Labels
		if in, down := tenants.Matches(labels.Set(own)), supers.Matches(labels.Set(copied)); in != down {
			t.Errorf("%v selects a pod with labels %v in the tenant: %t; and in the super cluster, with %v: %t", selector, own, in, copied, down)
		}
	})
}
