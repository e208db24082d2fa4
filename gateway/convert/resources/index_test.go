package resources_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const red, blue = "team-1a2b3c-red", "team-1a2b3c-blue"

// widgets is the CRD of a tenant in the super cluster, in a group of the tenant
// of.
func widgets(key, of string) *resources.CRD {
	crd := &resources.CRD{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.Converted: key}}}
	crd.Spec.Group, crd.Spec.Names.Plural = naming.Namer{Key: of}.Group("example.com"), "widgets"
	crd.Name = "widgets." + crd.Spec.Group
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{}}}
	return crd
}

func TestIndex(t *testing.T) {
	index, resource := resources.New(), schema.GroupResource{Group: "example.com", Resource: "widgets"}
	super := widgets(red, red)
	index.Set(super)
	found, ok := index.Find(red, resource)
	if !ok || found.Name != "widgets.example.com" || found.Spec.Versions[0].Schema != nil {
		t.Fatalf("found %v, %t", found, ok)
	}
	if super.Spec.Versions[0].Schema == nil {
		t.Error("what the informer has was changed")
	}
	if _, ok := index.Find(blue, resource); ok {
		t.Error("another tenant has it")
	}
	_, before := index.All(red)
	index.Delete(super)
	if all, after := index.All(red); len(all) > 0 || after == before {
		t.Errorf("there is %v after a deletion, generation %d", all, after)
	}
}

// TestForeignGroup: a label alone gives a tenant no CRD of another.
func TestForeignGroup(t *testing.T) {
	index := resources.New()
	index.Set(widgets(red, blue))
	index.Set(widgets("", red))
	for _, key := range []string{red, blue, ""} {
		if all, _ := index.All(key); len(all) > 0 {
			t.Errorf("%q has %v", key, all)
		}
	}
}
