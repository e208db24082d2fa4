package caches_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestReader(t *testing.T) {
	k, there := kindstest.Typed(kindstest.Rich()), cachestest.NewInformer()
	r := caches.NewReader(&cachestest.Cache{Informer: there})
	if _, err := r.Open(t.Context(), k, caches.TenantIndexes(k)); err != nil {
		t.Fatal(err)
	}
	web := kindstest.PodIn("default", "web")
	for _, pod := range []*corev1.Pod{web, kindstest.PodIn("default", "db"), kindstest.PodIn("other", "web")} {
		_ = there.Index.Add(pod)
	}
	close(there.Synced)

	if got, err := r.Get(t.Context(), k, kindstest.WebKey()); err != nil || got != client.Object(web) {
		t.Errorf("got %v, %v; want the object itself", got, err)
	}
	if got, err := r.Get(t.Context(), k, client.ObjectKey{Name: "web"}); err != nil || got != nil {
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
	expect("all", r.EachKey(t.Context(), k, noteKey), "default/db", "default/web", "other/web")
	expect("of a namespace", r.EachBy(t.Context(), k, toolscache.NamespaceIndex, "default", note), "default/db", "default/web")
	expect("by what they refer to",
		r.EachKeyBy(t.Context(), k, caches.IndexReferences, caches.ReferenceValue("other", "Secret", "web"), noteKey), "other/web")
	for namespace, want := range map[string]bool{"default": true, "other": true, "none": false} {
		if has, err := r.Has(t.Context(), k, toolscache.NamespaceIndex, namespace); err != nil || has != want {
			t.Errorf("it has something in namespace %s: %t, %v", namespace, has, err)
		}
	}
	for what, err := range map[string]error{
		"objects": r.EachBy(t.Context(), k, "no such index", "", note),
		"keys":    r.EachKeyBy(t.Context(), k, "no such index", "", noteKey),
	} {
		if err == nil {
			t.Errorf("%s were found by an index that is not there", what)
		}
	}
}

// TestReaderWaits checks that reads wait for a complete list: until then, an
// object that is not in the index may exist.
func TestReaderWaits(t *testing.T) {
	k, there := kindstest.Typed(kindstest.Plain()), cachestest.NewInformer()
	r := caches.NewReader(&cachestest.Cache{Informer: there})
	if _, err := r.Get(t.Context(), k, kindstest.WebKey()); err == nil {
		t.Error("no error for a kind that is not watched")
	}
	if _, err := r.Open(t.Context(), k, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Get(ctx, k, kindstest.WebKey()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v before the list was complete", err)
	}
	close(there.Synced)
	if _, err := r.Get(t.Context(), k, kindstest.WebKey()); err != nil {
		t.Error(err)
	}
}

// TestReaderOpensOnce checks that a closed kind can be opened again, like that
// of a custom resource.
func TestReaderOpensOnce(t *testing.T) {
	k, over := kindstest.Typed(kindstest.Rich()), &cachestest.Cache{Informer: cachestest.NewInformer()}
	r := caches.NewReader(over)
	for range 2 {
		if _, err := r.Open(t.Context(), k, caches.TenantIndexes(k)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(t.Context(), k); err != nil || over.Removed != 1 {
		t.Errorf("%d informers were removed, %v", over.Removed, err)
	}
	if _, err := r.Get(t.Context(), k, kindstest.WebKey()); err == nil {
		t.Error("no error for a kind that is watched no more")
	}
	over.Informer = cachestest.NewInformer()
	if _, err := r.Open(t.Context(), k, caches.TenantIndexes(k)); err != nil {
		t.Error(err)
	}
	over.Err = errors.New("no such kind")
	if _, err := r.Open(t.Context(), k, nil); !errors.Is(err, over.Err) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkRead measures reading a pod from a cache, and finding the pods that
// refer to an object.
func BenchmarkRead(b *testing.B) {
	k := kindstest.Typed(kindstest.Rich())
	r := cachestest.NewReader()
	cachestest.Hold(r, k, kindstest.PodIn("default", "web"))
	for n := range 100 {
		cachestest.Hold(r, k, kindstest.PodIn("default", strconv.Itoa(n)))
	}
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Get(b.Context(), k, kindstest.WebKey()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("has", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Has(b.Context(), k, toolscache.NamespaceIndex, "default"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
