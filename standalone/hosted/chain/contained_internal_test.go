package chain

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/decoded"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const longest = 30 * time.Second

var errHook = errors.New("a hook that fails")

// brokenCodec panics on stored objects with a certain word in them.
type brokenCodec struct{ runtime.Codec }

const brokenWord = "breaks-the-decoder"

func (c brokenCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if bytes.Contains(data, []byte(brokenWord)) {
		panic("a broken object")
	}
	return c.Codec.Decode(data, defaults, into)
}

// brokenStore returns a storage of ConfigMaps with that codec.
func brokenStore(t *testing.T) storage.Interface {
	t.Helper()
	_, all := etcdtest.Start(t)
	own, err := clientv3.New(clientv3.Config{Endpoints: all.Endpoints()})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = own.Close() })
	resource := schema.GroupResource{Resource: "configmaps"}
	s := newStores(nil, keyspace.Confine(own), decoded.New(listedBytes), func(inner storage.Interface, _ schema.GroupResource) storage.Interface { return inner })
	config := storagebackend.NewDefaultConfig("/", brokenCodec{legacyscheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)})
	store, err := s.create(config.ForResource(resource), resource, "/configmaps",
		func() runtime.Object { return &api.ConfigMap{} }, func() runtime.Object { return &api.ConfigMapList{} })
	g.Expect(err).NotTo(HaveOccurred())
	return store
}

func storeConfigMap(t *testing.T, store storage.Interface, tenant, name, word string) {
	t.Helper()
	object := &api.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: map[string]string{"word": word}}
	NewWithT(t).Expect(store.Create(keyspace.NewContext(t.Context(), tenant), "/configmaps/team/"+name, object, nil, 0)).To(Succeed())
}

func watchConfigMaps(t *testing.T, store storage.Interface, tenant string, predicate storage.SelectionPredicate) watch.Interface {
	t.Helper()
	w, err := store.Watch(keyspace.NewContext(t.Context(), tenant), "/configmaps/", storage.ListOptions{Recursive: true, Predicate: predicate})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.Stop)
	return w
}

// TestBrokenObjectEndsItsWatch: watches decode in goroutines of upstream, in
// which a panic ended the process.
func TestBrokenObjectEndsItsWatch(t *testing.T) {
	g := NewWithT(t)
	store := brokenStore(t)
	storeConfigMap(t, store, "red", "x", brokenWord)
	storeConfigMap(t, store, "blue", "x", "whole")
	var event watch.Event
	g.Eventually(watchConfigMaps(t, store, "red", storage.Everything).ResultChan(), longest).Should(Receive(&event))
	g.Expect(event.Type).To(Equal(watch.Error))
	g.Eventually(watchConfigMaps(t, store, "blue", storage.Everything).ResultChan(), longest).Should(Receive(&event))
	g.Expect(event.Type).To(Equal(watch.Added))

	var found api.ConfigMap
	err := store.Get(keyspace.NewContext(t.Context(), "red"), "/configmaps/team/x", storage.GetOptions{}, &found)
	g.Expect(err).To(MatchError(ContainSubstring("a broken object")))
	var list api.ConfigMapList
	options := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	g.Expect(store.GetList(keyspace.NewContext(t.Context(), "red"), "/configmaps/", options, &list)).NotTo(Succeed())
	g.Expect(store.GetList(keyspace.NewContext(t.Context(), "blue"), "/configmaps/", options, &list)).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
}

// TestBrokenAttributes: an object that cannot be selected is not in the watch,
// which continues.
func TestBrokenAttributes(t *testing.T) {
	g := NewWithT(t)
	store := brokenStore(t)
	storeConfigMap(t, store, "red", "broken", "")
	storeConfigMap(t, store, "red", "whole", "")
	w := watchConfigMaps(t, store, "red", storage.SelectionPredicate{
		Label: labels.SelectorFromSet(labels.Set{"of": "all"}), Field: fields.Everything(),
		GetAttrs: func(object runtime.Object) (labels.Set, fields.Set, error) {
			if object.(*api.ConfigMap).Name == "broken" {
				panic("broken attributes")
			}
			return labels.Set{"of": "all"}, fields.Set{}, nil
		},
	})
	var event watch.Event
	g.Eventually(w.ResultChan(), longest).Should(Receive(&event))
	g.Expect(event.Object.(*api.ConfigMap).Name).To(Equal("whole"))
}

// TestBrokenDecorator: an object that cannot be completed stays as it is
// stored.
func TestBrokenDecorator(t *testing.T) {
	g := NewWithT(t)
	called := 0
	store := &registry.Store{Decorator: func(runtime.Object) {
		called++
		panic("a broken decorator")
	}}
	containDecorator(store)
	store.Decorator(&api.Service{})
	g.Expect(called).To(Equal(1))
}

// TestBrokenDiscovery: upstream asks for discovery documents of aggregated APIs
// in goroutines that do not recover.
func TestBrokenDiscovery(t *testing.T) {
	g := NewWithT(t)
	broken := &remoteAPI{} // has no aggregator, which is a nil pointer
	broken.target.Store(&target{available: true})
	asked := httptest.NewRequestWithContext(request.WithUser(t.Context(), itself()), http.MethodGet, "/apis", nil)
	response := httptest.NewRecorder()
	broken.discover(response, asked)
	g.Expect(response.Code).To(Equal(http.StatusServiceUnavailable))

	for _, document := range []string{"", "{", "null", `{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"x/y/z"}]}`} {
		rehearse("apis", []byte(document))
		rehearse("apis/example.com/v1", []byte(document))
	}
}

// TestBrokenResolver: the same holds for the checks of their availability.
func TestBrokenResolver(t *testing.T) {
	_, err := apiServiceResolver{}.ResolveEndpoint("team", "hook", 443)
	NewWithT(t).Expect(err).To(BeAssignableToTypeOf(&views.PanicError{}))
}

// TestFailedControllerRestartsItsPart: the part ends some time after one of its
// controllers has ended, and only then.
func TestFailedControllerRestartsItsPart(t *testing.T) {
	for name, controller := range map[string]func(context.Context){
		"it panics":        func(context.Context) { panic("a broken controller") },
		"it ends silently": func(context.Context) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var failures, expiries atomic.Int64
				part := &background{unused: time.NewTimer(time.Hour)}
				part.run(t.Context(), func() bool { return true }, supervision{
					late: func() { t.Error("it is late") }, failed: func(error) { failures.Add(1) }, expire: func() { expiries.Add(1) },
				}, controller, controller, func(ctx context.Context) { <-ctx.Done() })
				synctest.Wait()
				g.Expect(failures.Load()).To(BeEquivalentTo(2))
				g.Expect(expiries.Load()).To(BeZero(), "not at once: each request would start it again")
				time.Sleep(restartDelay)
				synctest.Wait()
				g.Expect(expiries.Load()).To(BeEquivalentTo(1))
				part.stop()
				g.Expect(failures.Load()).To(BeEquivalentTo(2), "a stop is no failure")
			})
		})
	}
}

// TestBrokenRepair: a panic while objects are created again is a failure, which
// is retried.
func TestBrokenRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int64
		var failures []error
		u := &upkeep{
			life: t.Context(), failed: func(err error) { failures = append(failures, err) },
			repair: func(context.Context) error {
				if tries.Add(1) == 1 {
					panic("a broken repair")
				}
				return nil
			},
		}
		u.begin()
		u.request(time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		u.end()
		g.Expect(tries.Load()).To(BeEquivalentTo(2))
		g.Expect(failures).To(ConsistOf(MatchError(ContainSubstring("a broken repair"))))
	})
}

// TestBrokenHook: hooks of upstream run at the same time.
func TestBrokenHook(t *testing.T) {
	err := RunHooks(t.Context(), nil, map[string]genericapiserver.PostStartHookFunc{
		"broken": func(genericapiserver.PostStartHookContext) error { panic("a broken hook") },
		"failed": func(genericapiserver.PostStartHookContext) error { return errHook },
		"whole":  func(genericapiserver.PostStartHookContext) error { return nil },
	})
	NewWithT(t).Expect(err).To(And(MatchError(errHook), MatchError(ContainSubstring("hook broken: panic: a broken hook"))))
}
