package views_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const soon = 20 * time.Second

// store is an etcd with a feed that runs.
type store struct {
	t      testing.TB
	source *feed.Feed
	client *clientv3.Client
	// stop stops the feed.
	stop func()
}

func startStore(t testing.TB) *store {
	t.Helper()
	kv, client := etcdtest.Start(t)
	source, err := feed.New(kv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	s := &store{t: t, source: source, client: client}
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// put stores an object as an apiserver does.
func (s *store) put(tenant, resource string, object runtime.Object) {
	s.t.Helper()
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(tenant, resource, nameOf(object), encode(s.t, object, kinds[0].GroupVersion()))
}

func (s *store) write(tenant, resource, name string, value []byte) {
	s.t.Helper()
	if _, err := s.client.Put(context.Background(), s.key(tenant, resource, name), string(value)); err != nil {
		s.t.Fatal(err)
	}
}

// remove deletes a record of tenant red.
func (s *store) remove(resource, name string) {
	s.t.Helper()
	if _, err := s.client.Delete(context.Background(), s.key("red", resource, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) key(tenant, resource, name string) string {
	prefix, err := keyspace.RecordPrefix(tenant, resource)
	if err != nil {
		s.t.Fatal(err)
	}
	return prefix + name
}

func encode(t testing.TB, object runtime.Object, version schema.GroupVersion) []byte {
	t.Helper()
	serializer := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
	value, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(serializer, version), object)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func nameOf(object any) string { return cache.MetaObjectToName(object.(metav1.Object)).String() }

// views returns the views of a tenant that must not fail.
func (s *store) views(tenant string) *views.Views {
	return s.failing(tenant, func(tenant string, err error) { s.t.Errorf("tenant %s: %v", tenant, err) })
}

func (s *store) failing(tenant string, fail func(tenant string, err error)) *views.Views {
	s.t.Helper()
	v := views.New(context.Background(), s.source, tenant, views.Options{OnFailure: fail})
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := v.Close(ctx); err != nil {
			s.t.Error(err)
		}
	})
	return v
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: map[string]string{"value": value}}}
}

func pod(name, uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(uid)}}
}

// handler records the calls of a handler, as "+", "=" or "-" and the name.
type handler struct {
	mu    sync.Mutex
	calls []string
	// before is called before each call is recorded.
	before func(call string)
}

func (h *handler) called(call string) {
	if h.before != nil {
		h.before(call)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
}

func (h *handler) OnAdd(object any, initial bool) {
	if initial {
		h.called("(" + nameOf(object) + ")")
		return
	}
	h.called("+" + nameOf(object))
}

func (h *handler) OnUpdate(_, object any) { h.called("=" + nameOf(object)) }

func (h *handler) OnDelete(object any) { h.called("-" + nameOf(object)) }

func (h *handler) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.calls...)
}

// failures collects what OnFailure is called with.
type failures struct {
	mu   sync.Mutex
	errs []error
}

func (f *failures) add(tenant string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, errors.Join(errors.New(tenant), err))
}

func (f *failures) all() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error{}, f.errs...)
}

func synced(g Gomega, registration cache.ResourceEventHandlerRegistration) {
	g.Eventually(registration.HasSynced, soon).Should(BeTrue())
}
