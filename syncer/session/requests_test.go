package session_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

func TestDiffering(t *testing.T) {
	secret := func(names ...string) []kinds.Reference {
		var refs []kinds.Reference
		for _, name := range names {
			refs = append(refs, kinds.Reference{Kind: "Secret", Name: name})
		}
		return refs
	}
	tests := map[string]struct{ was, now, want []kinds.Reference }{
		"none":            {nil, nil, nil},
		"the same":        {secret("a", "b"), secret("b", "a"), nil},
		"one begins":      {secret("a"), secret("a", "b"), secret("b")},
		"one ceases":      {secret("a", "b"), secret("b"), secret("a")},
		"one for another": {secret("a"), secret("b"), secret("a", "b")},
		"of another kind": {secret("a"), []kinds.Reference{{Kind: "ConfigMap", Name: "a"}}, append(secret("a"), kinds.Reference{Kind: "ConfigMap", Name: "a"})},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, session.Differing(tt.was, tt.now)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}
