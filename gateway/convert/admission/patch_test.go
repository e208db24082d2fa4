package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

const key = "team-0a1b2c-red"

type shop struct{}

func (shop) TenantName(clusterKey, super string) (string, bool) {
	return "shop", clusterKey == key && super == key+"-shop"
}

func parsed(t *testing.T, text string) document.Object {
	t.Helper()
	object, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// TestPatchOf: what the tenant does not see stays, and what it changes is
// converted.
func TestPatchOf(t *testing.T) {
	namer := naming.Namer{Key: key, Namespaces: shop{}}
	pod := target{kind: kinds.Find("", "pods"), namer: namer}
	const super = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"` + key + `-shop","creationTimestamp":null,
		"labels":{"tenancy.x-k8s.io/converted":"` + key + `","a":"1"}},
		"spec":{"containers":[{"name":"main","env":[{"name":"NS","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['tenancy.x-k8s.io/namespace']"}}}]}]}}`
	const before = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop","labels":{"a":"1"}},
		"spec":{"containers":[{"name":"main","env":[{"name":"NS","valueFrom":{"fieldRef":{"fieldPath":"metadata.namespace"}}}]}]}}`
	for name, tt := range map[string]struct{ change, want string }{
		"nothing": {`[]`, ``},
		"labels as a whole": {`[{"op":"replace","path":"/metadata/labels","value":{"b":"2"}}]`,
			`{"labels":{"b":"2","tenancy.x-k8s.io/converted":"` + key + `"}}`},
		"no labels": {`[{"op":"remove","path":"/metadata/labels"}]`, `{"labels":{"tenancy.x-k8s.io/converted":"` + key + `"}}`},
		"an annotation": {`[{"op":"add","path":"/metadata/annotations","value":{"c":"3"}}]`,
			`{"annotations":{"c":"3"},"labels":{"a":"1","tenancy.x-k8s.io/converted":"` + key + `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := jsonpatch.DecodePatch([]byte(tt.change))
			if err != nil {
				t.Fatal(err)
			}
			after, err := patch.Apply([]byte(before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := patchOf(pod, []byte(super), parsed(t, before), parsed(t, string(after)))
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if got != nil {
					t.Errorf("patch %s", got)
				}
				return
			}
			mutated := applied(t, super, got)
			metadata, _ := mutated["metadata"].(document.Object)
			for _, field := range []string{"name", "namespace", "creationTimestamp"} {
				delete(metadata, field)
			}
			text, _ := json.Marshal(metadata)
			if string(text) != tt.want {
				t.Errorf("metadata %s, want %s", text, tt.want)
			}
			if spec, _ := json.Marshal(mutated["spec"]); string(spec) != specOf(t, super) {
				t.Errorf("spec %s", spec)
			}
		})
	}
}

func applied(t *testing.T, super string, operations []byte) document.Object {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	mutated, err := patch.Apply([]byte(super))
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, string(mutated))
}

func specOf(t *testing.T, text string) string {
	t.Helper()
	spec, err := json.Marshal(parsed(t, text)["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(spec)
}

// TestPatchOfConverts: an element that is added is converted, as those that the
// tenant writes are.
func TestPatchOfConverts(t *testing.T) {
	pod := target{kind: kinds.Find("", "pods"), namer: naming.Namer{Key: key, Namespaces: shop{}}}
	const super = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"` + key + `-shop"},"spec":{"containers":[{"name":"main"}]}}`
	const before = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop"},"spec":{"containers":[{"name":"main"}]}}`
	const after = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop"},"spec":{"containers":[{"name":"main",
		"env":[{"name":"NS","valueFrom":{"fieldRef":{"fieldPath":"metadata.namespace"}}}]}]}}`
	patch, err := patchOf(pod, []byte(super), parsed(t, before), parsed(t, after))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"containers":[{"env":[{"name":"NS","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['tenancy.x-k8s.io/namespace']"}}}],"name":"main"}]}`
	got, err := json.Marshal(applied(t, super, patch)["spec"])
	if err != nil || string(got) != want {
		t.Errorf("spec %s, %v", got, err)
	}
}

// TestPatchOfRefuses: a webhook makes no other object, and nothing of the
// platform's.
func TestPatchOfRefuses(t *testing.T) {
	pod := target{kind: kinds.Find("", "pods"), namer: naming.Namer{Key: key, Namespaces: shop{}}}
	const before = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop","uid":"u"},"spec":{}}`
	for name, after := range map[string]string{
		"name":       `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"shop","uid":"u"},"spec":{}}`,
		"namespace":  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"other","uid":"u"},"spec":{}}`,
		"uid":        `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop","uid":"v"},"spec":{}}`,
		"kind":       `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"shop","uid":"u"},"spec":{}}`,
		"apiVersion": `{"apiVersion":"v2","kind":"Pod","metadata":{"name":"a","namespace":"shop","uid":"u"},"spec":{}}`,
		"metadata":   `{"apiVersion":"v1","kind":"Pod","metadata":"a"}`,
	} {
		if _, err := patchOf(pod, []byte(before), parsed(t, before), parsed(t, after)); !errors.Is(err, errIdentity) {
			t.Errorf("%s: %v", name, err)
		}
	}
	reserved := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop","uid":"u","labels":{"tenancy.x-k8s.io/converted":"x"}},"spec":{}}`
	if _, err := patchOf(pod, []byte(before), parsed(t, before), parsed(t, reserved)); err == nil {
		t.Error("a label of the platform was accepted")
	}
}

// TestPatchOfDeepObjects: one that was stored deep can be changed, and gets no deeper.
func TestPatchOfDeepObjects(t *testing.T) {
	pod := target{kind: kinds.Find("", "pods"), namer: naming.Namer{Key: key, Namespaces: shop{}}}
	nested := func(levels int) document.Object {
		deep := strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
		object, err := document.ParseTrusted([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"a":` + deep + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	const most = document.MaxDepth - 1
	for name, tc := range map[string]struct {
		before, after int
		want          error
	}{
		"a flat one":                  {1, most, nil},
		"one that gets too deep":      {1, most + 1, document.ErrTooDeep},
		"a deep one":                  {most + 2, most + 2, nil},
		"a deep one that gets deeper": {most + 2, most + 3, document.ErrTooDeep},
	} {
		if _, err := patchOf(pod, []byte("{}"), nested(tc.before), nested(tc.after)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCopiesAreLimited: each of these copies doubles the object.
func TestCopiesAreLimited(t *testing.T) {
	NewTenants()
	const times = 20
	operations := make([]string, times)
	for i := range operations {
		operations[i] = fmt.Sprintf(`{"op":"copy","from":"/metadata","path":"/metadata/x%d"}`, i)
	}
	patch, err := jsonpatchv4.DecodePatch([]byte("[" + strings.Join(operations, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = patch.Apply([]byte(`{"metadata":{"name":"a"}}`))
	if _, tooLarge := errors.AsType[*jsonpatchv4.AccumulatedCopySizeError](err); !tooLarge {
		t.Errorf("a patch that copies 25 MB: %v", err)
	}
}
