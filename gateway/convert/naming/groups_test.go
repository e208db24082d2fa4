package naming_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

func TestCRD(t *testing.T) {
	red, blue := naming.Namer{Key: "team-1a2b3c-red"}, naming.Namer{Key: "team-1a2b3c-blue"}
	super, err := red.CRD("widgets.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if wrong := validation.IsDNS1123Subdomain(super); len(wrong) > 0 {
		t.Errorf("%s: %q", super, wrong)
	}
	if tenant, ok := red.TenantCRD(super); !ok || tenant != "widgets.example.com" {
		t.Errorf("%s is %s of the tenant, %t", super, tenant, ok)
	}
	if tenant, ok := blue.TenantCRD(super); ok {
		t.Errorf("%s is %s of another tenant", super, tenant)
	}
	if _, group, _ := strings.Cut(super, "."); group != red.Group("example.com") {
		t.Errorf("%s is not of the group %s", super, red.Group("example.com"))
	}
	text := `customresourcedefinitions.apiextensions.k8s.io "` + super + `" not found`
	if got, want := red.Text(text, ""), `customresourcedefinitions.apiextensions.k8s.io "widgets.example.com" not found`; got != want {
		t.Errorf("the text is %s", got)
	}
}

func TestCRDNames(t *testing.T) {
	n := naming.Namer{Key: "team-1a2b3c-red"}
	for name, want := range map[string]string{
		"widgets":                          "a dot, and spec.group",
		strings.Repeat("a.", 116) + "long": "must be no more than 233",
		strings.Repeat("a.", 116) + "b":    "",
		"":                                 "a dot, and spec.group",
	} {
		_, err := n.CRD(name)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestGroupsMeetNoOther: what a tenant calls its group does not matter.
func TestGroupsMeetNoOther(t *testing.T) {
	red, blue := naming.Namer{Key: "team-1a2b3c-red"}, naming.Namer{Key: "team-1a2b3c-blue"}
	forged := red.Group(blue.Group("example.com"))
	if tenant, ok := blue.TenantGroup(forged); ok {
		t.Errorf("%s is %s of the other tenant", forged, tenant)
	}
	if tenant, ok := red.TenantGroup(forged); !ok || tenant != blue.Group("example.com") {
		t.Errorf("%s is %s, %t", forged, tenant, ok)
	}
}
