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

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestRequest(t *testing.T) {
	r := Request{Cluster: "team-71a1c3-blue", Kind: "Pod", Key: webKey}
	if got := r.Lane(); got != "team-71a1c3-blue" {
		t.Errorf("the lane is %q", got)
	}
	if got, want := r.String(), "team-71a1c3-blue: Pod default/web"; got != want {
		t.Errorf("the request is %q, want %q", got, want)
	}
}

func TestReferencesOf(t *testing.T) {
	silent := rich()
	silent.References = func(*corev1.Pod) []kinds.Reference { return nil }
	tests := map[string]struct {
		kind  *kinds.Kind
		want  []kinds.Reference
		index []string
	}{
		"of a kind that refers to something": {
			rich().Erase(), []kinds.Reference{{Kind: "Secret", Name: "web"}}, []string{"default/Secret/web"},
		},
		"of an object that refers to nothing": {silent.Erase(), nil, []string{}},
		"of a kind that refers to nothing":    {plain.Erase(), nil, nil},
		"of a kind that does not go down":     {kinds.Up[*corev1.Pod]{}.Erase(), nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, kinds.References(tt.kind, named("web"))); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
			if tt.index == nil {
				return
			}
			got, err := tenantIndexes(tt.kind)[indexReferences](podIn("default", "web"))
			if diff := cmp.Diff(tt.index, got); err != nil || diff != "" {
				t.Errorf("index: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestIndexValues: what is put into an index is what is looked for, and differs for what differs.
func TestIndexValues(t *testing.T) {
	values := []string{
		referenceValue("x", "Secret", "a"), referenceValue("x", "ConfigMap", "a"), referenceValue("x", "Secret", "b"), referenceValue("y", "Secret", "a"),
	}
	if slices.Sort(values); len(slices.Compact(values)) != 4 {
		t.Error("two references have one value")
	}
	if nodeValue("blue", "n") == nodeValue("green", "n") || nodeValue("blue", "n") == nodeValue("blue", "m") {
		t.Error("two tenants' nodes have one value")
	}
}

func TestStand(t *testing.T) {
	deleted := named("web")
	deleted.DeletionTimestamp = new(metav1.Now())
	tests := map[string]struct {
		obj  client.Object
		want presence
	}{
		"no object":           {nil, absent},
		"an object":           {named("web"), present},
		"an object that goes": {deleted, deleting},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stand(tt.obj); got != tt.want {
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
		"a pod that has had no copy":       {rich().Erase(), named("new"), priorityNormal},
		"a pod that has had one":           {rich().Erase(), named("started"), priorityLow},
		"what does not live with its copy": {plain.Erase(), named("new"), priorityLow},
		"what is shown":                    {kinds.Up[*corev1.Pod]{}.Erase(), named("new"), priorityLow},
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
	all := handler{
		add: func(obj client.Object, initial bool) {
			got = append(got, "add "+obj.GetName())
			if initial {
				got = append(got, "at first")
			}
		},
		update: func(was, now client.Object) { got = append(got, "update "+was.GetName()+" to "+now.GetName()) },
		remove: func(obj client.Object, missed bool) {
			got = append(got, "remove "+obj.GetName())
			if missed {
				got = append(got, "missed")
			}
		},
	}
	tests := map[string]struct {
		event func(handler)
		want  []string
	}{
		"an object of the first list": {func(h handler) { h.OnAdd(named("a"), true) }, []string{"add a", "at first"}},
		"a new object":                {func(h handler) { h.OnAdd(named("a"), false) }, []string{"add a"}},
		"a change":                    {func(h handler) { h.OnUpdate(named("a"), named("b")) }, []string{"update a to b"}},
		"an end":                      {func(h handler) { h.OnDelete(named("a")) }, []string{"remove a"}},
		"an end that nobody saw": {
			func(h handler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a", Obj: named("a")}) }, []string{"remove a", "missed"},
		},
		"an end of which nothing is known": {func(h handler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a"}) }, nil},
		"what is no object is ignored": {
			func(h handler) {
				h.OnAdd("a", false)
				h.OnUpdate("a", named("b"))
				h.OnUpdate(named("a"), "b")
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
			tt.event(handler{}) // has no functions, and must not call any
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
			if diff := cmp.Diff(tt.want, differing(tt.was, tt.now)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoHandlerWaitsForAnotherKind: a handler that reads a cache which is not full would hold up the informer that calls it.
func TestNoHandlerWaitsForAnotherKind(*testing.T) {
	e := &Engine{watching: make(chan struct{}), sessions: map[multicluster.ClusterName]*session{"blue": {}}}
	node := kinds.Up[*corev1.Node]{Name: nodeKind, Object: &corev1.Node{}, Node: true}.Erase()
	events := kinds.Up[*corev1.Event]{Name: "Event", Object: &corev1.Event{}}.Erase()
	// There is nothing that they could read.
	e.superHandler(node).OnAdd(&corev1.Node{}, true)
	e.superHandler(events).OnAdd(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "blue-default"}}, true)
}
