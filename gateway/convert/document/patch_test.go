package document_test

import (
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestJSONPatch(t *testing.T) {
	const policies = "networking.k8s.io"
	for name, tt := range map[string]struct{ group, resource, patch, want string }{
		"of a field without a rule": {"", "configmaps", `[{"op":"add","path":"/data/a","value":"` + key + `"}]`, `[{"op":"add","path":"/data/a","value":"` + key + `"}]`},
		"of a label":                {"", "pods", `[{"op":"add","path":"/metadata/labels/example.com~1a","value":"b"}]`, `[{"op":"add","path":"/metadata/labels/example.com~1a","value":"b"}]`},
		"of a renamed label": {
			"", "namespaces", `[{"op":"remove","path":"/metadata/labels/pod-security.kubernetes.io~1enforce"}]`,
			`[{"op":"remove","path":"/metadata/labels/` + strings.ReplaceAll(names.Label("pod-security.kubernetes.io/enforce"), "/", "~1") + `"}]`,
		},
		"of all labels":  {"", "pods", `[{"op":"replace","path":"/metadata/labels","value":{"a":"b"}}]`, `[{"op":"replace","path":"/metadata/labels","value":{"a":"b"}}]`},
		"of a namespace": {"", "pods", `[{"op":"test","path":"/metadata/namespace","value":"shop"}]`, `[{"op":"test","path":"/metadata/namespace","value":"` + key + `-shop"}]`},
		"of a peer": {
			policies, "networkpolicies", `[{"op":"add","path":"/spec/ingress/0/from/-","value":{"namespaceSelector":{}}}]`,
			`[{"op":"add","path":"/spec/ingress/0/from/-","value":{"namespaceSelector":{"matchLabels":{"` + names.Converted + `":"` + key + `"}}}}]`,
		},
		"to null":  {"", "configmaps", `[{"op":"add","path":"/data","value":null}]`, `[{"op":"add","path":"/data","value":null}]`},
		"a copy":   {"", "configmaps", `[{"op":"copy","from":"/data/a","path":"/data/b"}]`, `[{"op":"copy","path":"/data/b","from":"/data/a"}]`},
		"a remove": {"", "pods", `[{"op":"remove","path":"/metadata/labels","more":1}]`, `[{"op":"remove","path":"/metadata/labels"}]`},
		"of all": {
			"", "configmaps", `[{"op":"replace","path":"","value":{"metadata":{"namespace":"shop"}}}]`,
			`[{"op":"replace","path":"","value":{"metadata":{"namespace":"` + key + `-shop"}}}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := document.JSONPatchDown(namer, kinds.Find(tt.group, tt.resource).Fields(), []byte(tt.patch))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestJSONPatchRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ patch, want string }{
		"a reserved label":       {`[{"op":"remove","path":"/metadata/labels/tenancy.x-k8s.io~1converted"}]`, "the platform's"},
		"a test of one":          {`[{"op":"test","path":"/metadata/labels/tenancy.x-k8s.io~1converted","value":"a"}]`, "the platform's"},
		"a copy of the labels":   {`[{"op":"copy","from":"/metadata/labels","path":"/data"}]`, "holds names"},
		"a copy of a label":      {`[{"op":"copy","from":"/metadata/labels/tenancy.x-k8s.io~1converted","path":"/metadata/annotations/a"}]`, "holds names"},
		"a copy of a namespace":  {`[{"op":"copy","from":"/metadata/namespace","path":"/data/a"}]`, "holds names"},
		"a copy of the metadata": {`[{"op":"move","from":"/metadata","path":"/data/a"}]`, "holds names"},
		"a copy of all":          {`[{"op":"copy","from":"","path":"/data/a"}]`, "holds names"},
		"a copy to a namespace":  {`[{"op":"copy","from":"/data/a","path":"/metadata/namespace"}]`, "holds names"},
		"a copy without a slash": {`[{"op":"copy","from":"x/metadata/namespace","path":"/data/a"}]`, "begin with a slash"},
		"a path without a slash": {`[{"op":"add","path":"x/metadata/labels/a","value":"b"}]`, "begin with a slash"},
		"a copy by a slash":      {`[{"op":"copy","from":"/","path":"/a"}]`, "an empty step"},
		"a copy by two slashes":  {`[{"op":"copy","from":"/metadata/","path":"/data"}]`, "an empty step"},
		"a part of an owner":     {`[{"op":"add","path":"/metadata/ownerReferences/0/kind","value":"ClusterRole"}]`, "as a whole"},
		"below a label":          {`[{"op":"add","path":"/metadata/labels/a/b","value":"c"}]`, "as a whole"},
		"an owner":               {`[{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"v1","kind":"Node","name":"a","uid":"1"}}]`, "not served"},
		"another operation":      {`[{"op":"Add","path":"/data/a","value":"b"}]`, "no operation"},
		"no path":                {`[{"op":"add","value":"b"}]`, "no path"},
		"no value":               {`[{"op":"add","path":"/data/a"}]`, "no value"},
		"two paths":              {`[{"op":"add","path":"/data/a","path":"/metadata/labels/a","value":"b"}]`, "duplicate"},
		"an object":              {`{}`, "a list of operations"},
		"a text":                 {`["a"]`, "no path"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := document.JSONPatchDown(namer, kinds.Find("", "configmaps").Fields(), []byte(tt.patch))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %s, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// FuzzJSONPatch: whatever a patch does to an object of the super cluster, the
// tenant reads no name of the super cluster in the result.
func FuzzJSONPatch(f *testing.F) {
	f.Add(`[{"op":"copy","from":"/metadata/labels","path":"/spec/a"}]`)
	f.Add(`[{"op":"move","from":"/spec/affinity/podAffinity","path":"/spec/a"},{"op":"remove","path":"/metadata/labels"}]`)
	f.Add(`[{"op":"copy","from":"/spec/nodeName","path":"/spec/affinity"},{"op":"add","path":"/metadata/labels/a~1b","value":"c"}]`)
	f.Add(`[{"op":"replace","path":"/metadata","value":{"namespace":"shop"}},{"op":"copy","from":"/metadata/x","path":"/y"}]`)
	f.Add(`[{"op":"copy","from":"/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey","path":"/spec/a"}]`)
	pod := `{"kind":"Pod","metadata":{"namespace":"` + key + `-shop","labels":{"app":"web","` + names.Converted + `":"` + key + `"},
		"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"` + key + `-other","uid":"1"}]},"spec":{"nodeName":"a",
		"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","namespaces":["` + key + `-other"],
		"namespaceSelector":{"matchLabels":{"` + names.Converted + `":"` + key + `"}}}]}}}}`
	kind := kinds.Find("", "pods")
	f.Fuzz(func(t *testing.T, patch string) {
		converted, err := document.JSONPatchDown(namer, kind.Fields(), []byte(patch))
		if err != nil || strings.Contains(patch, key) {
			return
		}
		decoded, err := jsonpatch.DecodePatch(converted)
		if err != nil {
			t.Fatalf("the patch %s becomes %s, which is none: %v", patch, converted, err)
		}
		patched, err := decoded.Apply([]byte(pod))
		if err != nil {
			return
		}
		object, err := document.ParseTrusted(patched)
		if err != nil || response(kind).Up(object) != nil {
			return
		}
		shown, err := document.Write(object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(shown), key) {
			t.Errorf("the patch %s becomes %s, after which the tenant reads %s", patch, converted, shown)
		}
	})
}
