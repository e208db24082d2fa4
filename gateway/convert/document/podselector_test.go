package document_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// policies is the kind with selectors that the super cluster adds to.
var policies = kinds.Find("networking.k8s.io", "networkpolicies")

// selecting returns a NetworkPolicy with a selector of pods.
func selecting(selector any) document.Object {
	return document.Object{
		"kind": "NetworkPolicy", "metadata": document.Object{"namespace": key + "-shop", "name": "a"},
		"spec": document.Object{"podSelector": selector},
	}
}

// TestPodSelectorUp: the tenant does not see what the super cluster adds.
func TestPodSelectorUp(t *testing.T) {
	added := document.Object{"key": "tenancy.x-k8s.io/converted", "operator": "DoesNotExist"}
	tier := document.Object{"key": "tier", "operator": "Exists"}
	for name, tt := range map[string]struct{ super, want document.Object }{
		"of all pods":       {document.Object{"matchExpressions": []any{added}}, document.Object{}},
		"by a label":        {document.Object{"matchLabels": document.Object{"a": "b"}}, document.Object{"matchLabels": document.Object{"a": "b"}}},
		"by an expression":  {document.Object{"matchExpressions": []any{tier, added}}, document.Object{"matchExpressions": []any{tier}}},
		"added in front":    {document.Object{"matchExpressions": []any{added, tier}}, document.Object{"matchExpressions": []any{tier}}},
		"of another writer": {document.Object{}, document.Object{}},
	} {
		got := selecting(clone(t, tt.super))
		if err := response(policies).Up(got); err != nil {
			t.Fatal(err)
		}
		want := selecting(tt.want)
		want["metadata"].(document.Object)["namespace"] = "shop"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPodSelectorCells: a Table has selectors as texts.
func TestPodSelectorCells(t *testing.T) {
	for super, want := range map[string]string{
		"!tenancy.x-k8s.io/converted": "<none>", "<none>": "<none>",
		"app=web,!tenancy.x-k8s.io/converted,tier in (a,b)": "app=web,tier in (a,b)",
	} {
		table := document.Object{
			"kind": "Table", "apiVersion": "meta.k8s.io/v1",
			"columnDefinitions": []any{document.Object{"name": "Name"}, document.Object{"name": "Pod-Selector"}},
			"rows":              []any{document.Object{"cells": []any{"a", super}}},
		}
		if err := response(policies).Up(table); err != nil {
			t.Fatal(err)
		}
		if got := table["rows"].([]any)[0].(document.Object)["cells"].([]any)[1]; got != want {
			t.Errorf("%q becomes %q, want %q", super, got, want)
		}
	}
}

// TestPodSelectorRefused: a tenant cannot select by the platform's labels.
func TestPodSelectorRefused(t *testing.T) {
	for _, selector := range []any{
		document.Object{"matchLabels": document.Object{"tenancy.x-k8s.io/converted": "a"}},
		document.Object{"matchExpressions": []any{document.Object{"key": "tenancy.x-k8s.io/converted", "operator": "DoesNotExist"}}},
		document.Object{"matchExpressions": []any{document.Object{"operator": "Exists"}}},
		document.Object{"matchExpressions": document.Object{}}, document.Object{"matchLabels": "a"}, "a", []any{},
	} {
		object := selecting(selector)
		object["metadata"] = document.Object{"namespace": "shop", "name": "a"}
		if err := document.Down(namer, policies.Fields(), object); err == nil || !strings.Contains(err.Error(), "spec.podSelector") {
			t.Errorf("%v: %v", selector, err)
		}
	}
	for _, patch := range []string{
		`[{"op":"remove","path":"/spec/podSelector/matchExpressions"}]`, `[{"op":"copy","from":"/spec/podSelector","path":"/metadata/annotations/a"}]`,
		`[{"op":"remove","path":"/spec/podSelector/matchExpressions/0"}]`,
	} {
		if _, err := document.JSONPatchDown(namer, policies.Fields(), []byte(patch)); err == nil {
			t.Errorf("%s is not refused", patch)
		}
	}
}
