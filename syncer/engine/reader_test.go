package engine

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// full is an informer whose index does not change by itself.
type full struct {
	cache.Informer
	index    toolscache.Indexer
	synced   chan struct{}
	handlers int
}

func (f *full) GetIndexer() toolscache.Indexer             { return f.index }
func (f *full) AddIndexers(more toolscache.Indexers) error { return f.index.AddIndexers(more) }
func (f *full) HasSyncedChecker() toolscache.DoneChecker   { return f }
func (f *full) Name() string                               { return "full" }
func (f *full) Done() <-chan struct{}                      { return f.synced }
func (f *full) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	f.handlers++
	return f, nil
}

func (f *full) HasSynced() bool { return toolscache.IsDone(f) }

func newFull() *full {
	return &full{
		index: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
			toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		}),
		synced: make(chan struct{}),
	}
}

// typed is a kind as the engine takes it.
func typed(of kinds.Flow) *kinds.Kind {
	k := of.Erase()
	k.GVK, _ = apiutil.GVKForObject(k.Object, clientgoscheme.Scheme)
	return k
}

// hold has a reader hold those of the objects that are of a kind, besides what it holds.
func hold(r *reader, k *kinds.Kind, objects ...client.Object) {
	in, ok := r.informers[k.GVK].(*full)
	if !ok {
		in = newFull()
		close(in.synced)
		_ = in.AddIndexers(tenantIndexes(k))
		_ = in.AddIndexers(superIndexes(k))
		r.informers[k.GVK] = in
	}
	for _, obj := range objects {
		if reflect.TypeOf(obj) == reflect.TypeOf(k.Object) {
			_ = in.index.Add(obj)
		}
	}
}

// asObjects are pods as objects.
func asObjects(pods []*corev1.Pod) []client.Object {
	objects := make([]client.Object, len(pods))
	for i, pod := range pods {
		objects[i] = pod
	}
	return objects
}

// opening is a cache that makes the same informer for every kind, and counts how often it is asked to and to let it go.
type opening struct {
	cache.Cache
	informer        cache.Informer
	err             error
	opened, removed int
}

func (o *opening) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	o.opened++
	return o.informer, o.err
}

func (o *opening) RemoveInformer(context.Context, client.Object) error {
	o.removed++
	return nil
}

func podIn(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestReader(t *testing.T) {
	k, there := typed(rich()), newFull()
	r := newReader(&opening{informer: there})
	if _, err := r.open(t.Context(), k, tenantIndexes(k)); err != nil {
		t.Fatal(err)
	}
	web := podIn("default", "web")
	for _, pod := range []*corev1.Pod{web, podIn("default", "db"), podIn("other", "web")} {
		_ = there.index.Add(pod)
	}
	close(there.synced)

	if got, err := r.get(t.Context(), k, webKey); err != nil || got != client.Object(web) {
		t.Errorf("got %v, %v; want the object itself", got, err)
	}
	if got, err := r.get(t.Context(), k, client.ObjectKey{Name: "web"}); err != nil || got != nil {
		t.Errorf("got %v, %v of what is not there", got, err)
	}
	var found []string
	noteKey := func(key client.ObjectKey) { found = append(found, key.String()) }
	note := func(obj client.Object) { noteKey(client.ObjectKeyFromObject(obj)) }
	expect := func(what string, err error, want ...string) {
		t.Helper()
		slices.Sort(found)
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
		found = nil
	}
	expect("all", r.eachKey(t.Context(), k, noteKey), "default/db", "default/web", "other/web")
	expect("of a namespace", r.eachBy(t.Context(), k, toolscache.NamespaceIndex, "default", note), "default/db", "default/web")
	expect("by what they refer to",
		r.eachKeyBy(t.Context(), k, indexReferences, referenceValue("other", "Secret", "web"), noteKey), "other/web")
	for namespace, want := range map[string]bool{"default": true, "other": true, "none": false} {
		if has, err := r.has(t.Context(), k, toolscache.NamespaceIndex, namespace); err != nil || has != want {
			t.Errorf("it has something in namespace %s: %t, %v", namespace, has, err)
		}
	}
	for what, err := range map[string]error{
		"objects": r.eachBy(t.Context(), k, "no such index", "", note),
		"keys":    r.eachKeyBy(t.Context(), k, "no such index", "", noteKey),
	} {
		if err == nil {
			t.Errorf("%s were found by an index that is not there", what)
		}
	}
}

// TestReaderWaits: until a list is complete, what is not in it may still be there.
func TestReaderWaits(t *testing.T) {
	k, there := typed(plain), newFull()
	r := newReader(&opening{informer: there})
	if _, err := r.get(t.Context(), k, webKey); err == nil {
		t.Error("no error for a kind that is not watched")
	}
	if _, err := r.open(t.Context(), k, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.get(ctx, k, webKey); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v before the list was complete", err)
	}
	close(there.synced)
	if _, err := r.get(t.Context(), k, webKey); err != nil {
		t.Error(err)
	}
}

// TestReaderOpensOnce: a kind is opened again when it was closed, as that of a custom resource is.
func TestReaderOpensOnce(t *testing.T) {
	k, over := typed(rich()), &opening{informer: newFull()}
	r := newReader(over)
	for range 2 {
		if _, err := r.open(t.Context(), k, tenantIndexes(k)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.close(t.Context(), k); err != nil || over.removed != 1 {
		t.Errorf("%d informers were removed, %v", over.removed, err)
	}
	if _, err := r.get(t.Context(), k, webKey); err == nil {
		t.Error("no error for a kind that is watched no more")
	}
	over.informer = newFull()
	if _, err := r.open(t.Context(), k, tenantIndexes(k)); err != nil {
		t.Error(err)
	}
	over.err = errors.New("no such kind")
	if _, err := r.open(t.Context(), k, nil); !errors.Is(err, over.err) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkRead is what it costs to read a pod from a cache and to find those that refer to an object.
func BenchmarkRead(b *testing.B) {
	k := typed(rich())
	r := newReader(nil)
	hold(r, k, podIn("default", "web"))
	for n := range 100 {
		hold(r, k, podIn("default", strconv.Itoa(n)))
	}
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.get(b.Context(), k, webKey); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("has", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.has(b.Context(), k, toolscache.NamespaceIndex, "default"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
