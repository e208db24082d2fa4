package compiled_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/gateway/convert/compiled"
	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// copied is an expression that upstream copies four times at each call.
var copied = "optional.of(1)" + strings.Repeat(".optMap(a,a)", 20) + ".hasValue()"

func TestCheckDefinition(t *testing.T) {
	kind := kinds.Find("apiextensions.k8s.io", "customresourcedefinitions")
	rule := func(source string) string { return fmt.Sprintf(`"x-kubernetes-validations":[{"rule":%q}]`, source) }
	pattern := "(" + strings.Repeat("a", 2000) + "){1000}"
	schema := func(fields string) string {
		return `"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object",` + fields + `}}}]`
	}
	deep := `"properties":{"a":{"type":"object",` + rule("true") + `}}`
	for range 30 {
		deep = `"properties":{"a":{"type":"object",` + rule("true") + `,` + deep + `}}`
	}
	for name, tt := range map[string]struct{ spec, want string }{
		"nothing":           {spec: schema(`"properties":{"a":{"type":"string"}}`)},
		"a rule":            {spec: schema(rule("self.a == 1"))},
		"rules in others":   {spec: schema(deep)},
		"an expensive rule": {spec: schema(rule(copied)), want: "as much work"},
		"one in items":      {spec: schema(`"properties":{"a":{"items":{` + rule(copied) + `}}}`), want: "as much work"},
		"its message": {
			spec: schema(`"x-kubernetes-validations":[{"rule":"true","messageExpression":"` + copied + `"}]`), want: "as much work",
		},
		"many rules":                {spec: schema(`"x-kubernetes-validations":[` + strings.Repeat(`{"rule":"true"},`, 3000) + `{}]`), want: "as much work"},
		"a pattern":                 {spec: schema(`"properties":{"a":{"pattern":"^a{1,63}$"}}`)},
		"an expensive pattern":      {spec: schema(`"properties":{"a":{"pattern":"` + pattern + `"}}`), want: "as much work"},
		"a pattern many times":      {spec: schema(`"oneOf":[` + strings.Repeat(`{"pattern":"^(a{1,500})$"},`, 5000) + `{}]`)},
		"properties of such names":  {spec: schema(`"properties":{"pattern":{},"jsonPath":{},"x-kubernetes-validations":{}}`)},
		"a path":                    {spec: `"versions":[{"additionalPrinterColumns":[{"jsonPath":".a"}]}]`},
		"a long path of a column":   {spec: `"versions":[{"additionalPrinterColumns":[{"jsonPath":".a` + strings.Repeat(" ", 5000) + `"}]}]`, want: "use a shorter one"},
		"a long path of a selector": {spec: `"versions":[{},{"selectableFields":[{"jsonPath":"` + strings.Repeat(".a", 3000) + `"}]}]`, want: "use a shorter one"},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := document.Parse([]byte(`{"spec":{` + tt.spec + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			err = compiled.Check(kind, object)
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckDevices(t *testing.T) {
	claims := kinds.Find("resource.k8s.io", "resourceclaims")
	for name, tt := range map[string]struct {
		kind     kinds.Kind
		selector string
		refused  bool
	}{
		"a claim":                  {claims, "device.driver == 'a'", false},
		"an expensive claim":       {claims, copied, true},
		"an expensive template":    {kinds.Find("resource.k8s.io", "resourceclaimtemplates"), copied, true},
		"an object of other kinds": {kinds.Find("", "configmaps"), copied, false},
	} {
		t.Run(name, func(t *testing.T) {
			selectors := `[{"cel":{"expression":"` + tt.selector + `"}}]`
			object, err := document.Parse([]byte(`{"spec":{"devices":{"requests":[{"exactly":{"selectors":` + selectors + `}}]}}}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Check(tt.kind, object); (err != nil) != tt.refused {
				t.Errorf("an object: error %v", err)
			}
			if tt.kind.Resource != claims.Resource {
				return
			}
			for _, value := range []string{selectors, `"` + tt.selector + `"`, `{"expression":"` + tt.selector + `"}`} {
				if err := compiled.CheckPatch([]byte(`[{"op":"add","path":"/a","value":` + value + `}]`)); (err != nil) != tt.refused {
					t.Errorf("a patch: error %v", err)
				}
			}
		})
	}
	if err := compiled.CheckPatch([]byte(`{}`)); err == nil {
		t.Error("no patch is accepted")
	}
	for _, op := range []string{"copy", "move"} {
		patch := `[{"op":"` + op + `","from":"/spec/devices/config/0/opaque/parameters/a","path":"/spec/devices/requests/0/exactly/selectors/0/cel/expression"}]`
		if err := compiled.CheckPatch([]byte(patch)); err == nil {
			t.Errorf("%s is accepted", op)
		}
	}
}
