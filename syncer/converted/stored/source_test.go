package stored

import (
	"context"
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// parsed returns an object in JSON, and its size.
func parsed(t *testing.T, text string) (*object, int64) {
	t.Helper()
	o := &object{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o, int64(len(text))
}

func TestSource(t *testing.T) {
	u, gone := NewUsage(), []types.UID(nil)
	s := &source{usage: u, tenantOf: ofNamespace, known: map[types.UID]entry{}, deleted: func(uid types.UID) { gone = append(gone, uid) }}
	expect := func(when, tenant string, want Amount) {
		t.Helper()
		if got := u.lockedTenant(tenant).stored; got != want {
			t.Errorf("%s: %s has %+v, want %+v", when, tenant, got, want)
		}
	}
	a, size := parsed(t, `{"metadata":{"uid":"a","namespace":"red","resourceVersion":"1"}}`)
	labeled, sizeOfLabeled := parsed(t, `{"metadata":{"uid":"b","namespace":"red-shop","labels":{"tenancy.x-k8s.io/converted":"red"}}}`)
	_ = s.Add(a)
	_ = s.Add(labeled)
	_ = s.Add(a) // again
	expect("created", "red", Amount{2, size + sizeOfLabeled})
	larger, sizeOfLarger := parsed(t, `{"metadata":{"uid":"a","namespace":"red","resourceVersion":"2"},"data":"more"}`)
	_ = s.Update(larger)
	expect("changed", "red", Amount{2, sizeOfLarger + sizeOfLabeled})
	converted, _ := parsed(t, `{"metadata":{"uid":"a","namespace":"red","resourceVersion":"2"}}`)
	_ = s.Update(converted)
	expect("smaller in another version of its type", "red", Amount{2, sizeOfLarger + sizeOfLabeled})
	moved, sizeOfMoved := parsed(t, `{"metadata":{"uid":"b","namespace":"red-shop","labels":{"tenancy.x-k8s.io/converted":"blue"}}}`)
	_ = s.Update(moved)
	expect("another's", "red", Amount{1, sizeOfLarger})
	expect("another's", "blue", Amount{1, sizeOfMoved})
	_ = s.Delete(moved)
	expect("deleted", "blue", Amount{})
	if s.synced.Load() {
		t.Error("it has not listed all")
	}
	_ = s.Replace([]any{labeled}, "9")
	expect("listed again", "red", Amount{1, sizeOfLabeled})
	if len(gone) != 2 || gone[0] != "b" || gone[1] != "a" || !s.synced.Load() {
		t.Errorf("%v are gone", gone)
	}
}

func TestVersionOf(t *testing.T) {
	version := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: storage}
	}
	for want, versions := range map[string][]apiextensionsv1.CustomResourceDefinitionVersion{
		"v1": {version("v1", true, true)},
		"v2": {version("v1", true, false), version("v2", true, true), version("v3", true, false)},
		"v3": {version("v1", false, true), version("v3", true, false), version("v4", true, false)},
		"":   {version("v1", false, true)},
	} {
		if got := versionOf(apiextensionsv1.CustomResourceDefinitionSpec{Versions: versions}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestFollowed: what is stored counts until it can be listed in the new version.
func TestFollowed(t *testing.T) {
	u := NewUsage()
	one := func() *counted {
		return &counted{definition: "d", ended: make(chan struct{}), source: source{usage: u, tenantOf: ofNamespace, client: failing(t)}}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	before, next, last := one(), one(), one()
	before.known = map[types.UID]entry{}
	object, size := parsed(t, `{"metadata":{"uid":"a","namespace":"red","resourceVersion":"1"}}`)
	_ = before.Add(object)
	before.isFollowed, next.isFollowed = true, true
	before.count(stopped, nil)
	next.count(stopped, before)
	if got := u.lockedTenant("red").stored; got != (Amount{1, size}) || next.synced.Load() {
		t.Errorf("before the new version is listed: %+v", got)
	}
	last.count(stopped, next)
	if got := u.lockedTenant("red").stored; got != (Amount{}) {
		t.Errorf("after the end: %+v", got)
	}
}

// TestHiddenFields: a custom resource is as large as it was written, whatever a
// watch shows of it.
func TestHiddenFields(t *testing.T) {
	u := NewUsage()
	s := &source{usage: u, as: "red", tenantOf: func(*object) string { return "red" }, known: map[types.UID]entry{}}
	sizeIs := func(when string, want int64) {
		t.Helper()
		if got := u.lockedTenant("red").stored.Bytes; got != want {
			t.Errorf("%s: %d bytes, want %d", when, got, want)
		}
	}
	write := func(version string, growth, size int64) {
		t.Helper()
		if err := u.Reserve("red", Write{UID: "a", Version: version, Growth: Amount{Bytes: growth}, Bytes: size}, Amount{}); err != nil {
			t.Error(err)
		}
	}
	pruned := func(version string) *object {
		o, _ := parsed(t, `{"metadata":{"uid":"a","resourceVersion":"`+version+`"}}`)
		return o
	}
	write("", 1000, 1000)
	_ = s.Add(pruned("1"))
	sizeIs("created", 1000)
	_ = s.Replace([]any{pruned("1")}, "1")
	sizeIs("listed again", 1000)
	write("1", 0, 900)
	_ = s.Update(pruned("2"))
	sizeIs("made smaller", 900)
	write("2", 100, 1000)
	write("3", -950, 50)
	_ = s.Update(pruned("4"))
	sizeIs("made larger, and smaller at once", 1000)
	write("4", -950, 50)
	_ = s.Update(pruned("5"))
	sizeIs("written again", 50)
	write("5", 950, 1000)
	write("6", -950, 50)
	_ = s.Update(pruned("6"))
	sizeIs("made larger, before it is made smaller", 1000)
	_ = s.Update(pruned("7"))
	sizeIs("made smaller at once", 50)
	write("7", 950, 1000)
	_ = s.Update(pruned("8"))
	_ = s.Update(pruned("9"))
	sizeIs("written by a controller", 1000)
	write("8", -950, 50)
	_ = s.Update(pruned("10"))
	sizeIs("written by a controller, while a write of an older version failed", 1000)
	u.Active = func() bool { return false }
	_ = s.Update(pruned("11"))
	sizeIs("while another replica is shown the writes", int64(len(`{"metadata":{"uid":"a","resourceVersion":"11"}}`)))
}

// failing returns a client of a server that does not answer.
func failing(t *testing.T) rest.Interface {
	t.Helper()
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: "https://127.0.0.1:1", ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
