package networks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

// vpcTemplate is a template in the form that platforms of Arktos have.
const vpcTemplate = `{
	"metadata": {"name": "default", "finalizers": ["arktos.futurewei.com/network"]},
	"spec": {"type": "vpc", "vpcID": "{{.}}-default-network"}
}`

func TestTemplate(t *testing.T) {
	template, err := parseTemplate(vpcTemplate)
	if err != nil {
		t.Fatal(err)
	}
	n, err := template.fill("team-0a1b2c-red")
	if err != nil {
		t.Fatal(err)
	}
	if n.Name != "default" || template.Name() != "default" || n.Spec.Type != "vpc" || n.Spec.VPCID != "team-0a1b2c-red-default-network" || !hasFinalizer(n) {
		t.Errorf("the default network is %+v", n)
	}
}

func TestReadTemplate(t *testing.T) {
	template, err := ReadTemplate("")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := template.fill("red"); err != nil || n.Name != "default" || n.Spec.Type != networkv1.TypeFlat {
		t.Errorf("without a file, the default network is %+v, %v", n, err)
	}
	file := filepath.Join(t.TempDir(), "network.json")
	if _, err := ReadTemplate(file); err == nil {
		t.Error("a file that does not exist is a template")
	}
	if err := os.WriteFile(file, []byte(vpcTemplate), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTemplate(file); err != nil {
		t.Error(err)
	}
}

func TestInvalidTemplates(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":                   {"name: default", "no Network in JSON"},
		"an unknown field":          {`{"metadata": {"name": "default"}, "spec": {"kind": "flat"}}`, "unknown field"},
		"no name":                   {`{"spec": {"type": "flat"}}`, "metadata.name"},
		"a name that is no label":   {`{"metadata": {"name": "a.b"}, "spec": {"type": "flat"}}`, "metadata.name"},
		"a name for each tenant":    {`{"metadata": {"name": "{{.}}"}, "spec": {"type": "flat"}}`, "the same for all tenants"},
		"no type":                   {`{"metadata": {"name": "default"}, "spec": {}}`, "spec.type"},
		"a template that is broken": {`{{`, "parse the template"},
		"a field of the tenant":     {`{{.Name}}`, "fill in"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseTemplate(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
		})
	}
}
