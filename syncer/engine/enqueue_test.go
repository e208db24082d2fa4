package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
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
		"of a kind that does not go down":     {kinds.Up[*corev1.Pod]{}.Erase(), nil, nil},
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

// TestIndexValues: what is put into an index is what is looked for, and differs for what differs.
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

func TestStand(t *testing.T) {
	deleted := kindstest.Named("web")
	deleted.DeletionTimestamp = new(metav1.Now())
	tests := map[string]struct {
		obj  client.Object
		want session.Presence
	}{
		"no object":           {nil, session.Absent},
		"an object":           {kindstest.Named("web"), session.Present},
		"an object that goes": {deleted, session.Deleting},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := session.Stand(tt.obj); got != tt.want {
				t.Errorf("it is %s, want %s", presences[got], presences[tt.want])
			}
		})
	}
}

// TestInitialPriority: of what a syncer finds when it starts, pods that have had no copy are looked at first.
func TestInitialPriority(t *testing.T) {
	for name, tc := range map[string]struct {
		kind *kinds.Kind
		obj  client.Object
		want int
	}{
		"a pod that has had no copy":       {kindstest.Rich().Erase(), kindstest.Named("new"), queue.PriorityNormal},
		"a pod that has had one":           {kindstest.Rich().Erase(), kindstest.Named("started"), queue.PriorityLow},
		"what does not live with its copy": {kindstest.Plain().Erase(), kindstest.Named("new"), queue.PriorityLow},
		"what is shown":                    {kinds.Up[*corev1.Pod]{}.Erase(), kindstest.Named("new"), queue.PriorityLow},
	} {
		t.Run(name, func(t *testing.T) {
			if got := initialPriority(tc.kind, tc.obj); got != tc.want {
				t.Errorf("its priority is %d, want %d", got, tc.want)
			}
		})
	}
}

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
		"an end that nobody saw": {
			func(h caches.Handler) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a", Obj: kindstest.Named("a")})
			}, []string{"remove a", "missed"},
		},
		"an end of which nothing is known": {func(h caches.Handler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a"}) }, nil},
		"what is no object is ignored": {
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
			tt.event(caches.Handler{}) // has no functions, and must not call any
		})
	}
}

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

// TestNoHandlerWaitsForAnotherKind: a handler that reads a cache which is not full would hold up the informer that calls it.
func TestNoHandlerWaitsForAnotherKind(*testing.T) {
	e := &Engine{SuperCluster: &session.SuperCluster{}, watching: make(chan struct{}), sessions: map[multicluster.ClusterName]*engagement{"blue": {}}}
	node := kinds.Up[*corev1.Node]{Name: session.NodeKind, Object: &corev1.Node{}, Node: true}.Erase()
	events := kinds.Up[*corev1.Event]{Name: "Event", Object: &corev1.Event{}}.Erase()
	// There is nothing that they could read.
	e.superHandler(node).OnAdd(&corev1.Node{}, true)
	e.superHandler(events).OnAdd(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "blue-default"}}, true)
}
