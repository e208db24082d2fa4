package caches_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestHandler(t *testing.T) {
	var got []string
	all := caches.Handler{
		Add: func(obj client.Object, initial bool) {
			got = append(got, "add "+obj.GetName())
			if initial {
				got = append(got, "at first")
			}
		},
		Update: func(was, now client.Object) { got = append(got, "update "+was.GetName()+" to "+now.GetName()) },
		Remove: func(obj client.Object, missed bool) {
			got = append(got, "remove "+obj.GetName())
			if missed {
				got = append(got, "missed")
			}
		},
	}
	tests := map[string]struct {
		event func(caches.Handler)
		want  []string
	}{
		"an object of the first list": {func(h caches.Handler) { h.OnAdd(kindstest.Named("a"), true) }, []string{"add a", "at first"}},
		"a new object":                {func(h caches.Handler) { h.OnAdd(kindstest.Named("a"), false) }, []string{"add a"}},
		"a change":                    {func(h caches.Handler) { h.OnUpdate(kindstest.Named("a"), kindstest.Named("b")) }, []string{"update a to b"}},
		"an end":                      {func(h caches.Handler) { h.OnDelete(kindstest.Named("a")) }, []string{"remove a"}},
		"a missed deletion": {
			func(h caches.Handler) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a", Obj: kindstest.Named("a")})
			}, []string{"remove a", "missed"},
		},
		"an end of which nothing is known": {func(h caches.Handler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a"}) }, nil},
		"a value that is not an object is ignored": {
			func(h caches.Handler) {
				h.OnAdd("a", false)
				h.OnUpdate("a", kindstest.Named("b"))
				h.OnUpdate(kindstest.Named("a"), "b")
				h.OnDelete("a")
			}, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got = nil
			tt.event(all)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			tt.event(caches.Handler{}) // must not panic without functions
		})
	}
}
