package host

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

func TestDeduce(t *testing.T) {
	var (
		nothing  = transfer.State{Empty: true}
		inUse    = transfer.State{}
		cleared  = transfer.State{Sealed: true, Empty: true, Attempt: 1}
		complete = func(attempt int64) transfer.State {
			return transfer.State{Sealed: true, Complete: true, Attempt: attempt}
		}
		partial = func(attempt int64) transfer.State { return transfer.State{Sealed: true, Attempt: attempt} }
	)
	for name, test := range map[string]struct {
		states map[string]transfer.State
		want   whereabouts
		err    string
	}{
		"of a new control plane":   {states: map[string]transfer.State{"a": nothing, "b": nothing}},
		"where it is to be":        {states: map[string]transfer.State{"a": nothing, "b": inUse}, want: whereabouts{at: "b"}},
		"before a move":            {states: map[string]transfer.State{"a": inUse, "b": nothing}, want: whereabouts{at: "a"}},
		"before a second attempt":  {states: map[string]transfer.State{"a": inUse, "b": cleared}, want: whereabouts{at: "a", attempt: 1}},
		"nowhere, and cleared":     {states: map[string]transfer.State{"a": nothing, "b": cleared}, want: whereabouts{attempt: 1}},
		"moved":                    {states: map[string]transfer.State{"a": complete(1), "b": inUse}, want: whereabouts{at: "b", unused: []string{"a"}, attempt: 1}},
		"moved, and deleted there": {states: map[string]transfer.State{"a": cleared, "b": inUse}, want: whereabouts{at: "b", attempt: 1}},
		"while it is copied": {
			states: map[string]transfer.State{"a": complete(2), "b": partial(2)},
			want:   whereabouts{at: "a", interrupted: true, unused: []string{"b"}, attempt: 2},
		},
		"copied": {
			states: map[string]transfer.State{"a": complete(2), "b": complete(2), "c": complete(1)},
			want:   whereabouts{at: "b", interrupted: true, unused: []string{"a", "c"}, attempt: 2},
		},
		"copied back": {
			states: map[string]transfer.State{"a": complete(3), "b": complete(2)},
			want:   whereabouts{at: "a", interrupted: true, unused: []string{"b"}, attempt: 3},
		},
		"in two stores": {states: map[string]transfer.State{"a": inUse, "b": inUse}, err: "ControlPlaneStores a, b all have data"},
		"in part":       {states: map[string]transfer.State{"a": nothing, "b": partial(1)}, err: "ControlPlaneStores b have a part"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := deduce(test.states, "b")
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if len(got.unused) == 0 {
				got.unused = nil
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}
