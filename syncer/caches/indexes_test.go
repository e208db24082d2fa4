package caches_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestReferencesOf(t *testing.T) {
	silent := kindstest.Rich()
	silent.References = func(*corev1.Pod) []kinds.Reference { return nil }
	tests := map[string]struct {
		kind  *kinds.Kind
		want  []kinds.Reference
		index []string
	}{
		"of a kind that refers to something": {
			kindstest.Rich().Erase(), []kinds.Reference{{Kind: "Secret", Name: "web"}}, []string{"default/Secret/web"},
		},
		"of an object that refers to nothing": {silent.Erase(), nil, []string{}},
		"of a kind that refers to nothing":    {kindstest.Plain().Erase(), nil, nil},
		"of a kind that is not synced down":   {kinds.Up[*corev1.Pod]{}.Erase(), nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, kinds.References(tt.kind, kindstest.Named("web"))); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
			if tt.index == nil {
				return
			}
			got, err := caches.TenantIndexes(tt.kind)[caches.IndexReferences](kindstest.PodIn("default", "web"))
			if diff := cmp.Diff(tt.index, got); err != nil || diff != "" {
				t.Errorf("index: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestIndexValues checks that values for lookups equal those in the index, and
// that different objects have different values.
func TestIndexValues(t *testing.T) {
	values := []string{
		caches.ReferenceValue("x", "Secret", "a"), caches.ReferenceValue("x", "ConfigMap", "a"), caches.ReferenceValue("x", "Secret", "b"), caches.ReferenceValue("y", "Secret", "a"),
	}
	if slices.Sort(values); len(slices.Compact(values)) != 4 {
		t.Error("two references have one value")
	}
	if caches.NodeValue("blue", "n") == caches.NodeValue("green", "n") || caches.NodeValue("blue", "n") == caches.NodeValue("blue", "m") {
		t.Error("two tenants' nodes have one value")
	}
}
