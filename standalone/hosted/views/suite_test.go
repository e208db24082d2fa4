package views_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/feedtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const soon = 20 * time.Second

// store is an etcd with a feed that runs.
type store struct {
	*feedtest.Store

	t testing.TB
}

func startStore(t testing.TB) *store {
	t.Helper()
	return &store{feedtest.Start(t), t}
}

// views returns the views of a tenant that must not fail.
func (s *store) views(tenant string) *views.Views {
	return s.failing(tenant, func(tenant string, err error) { s.t.Errorf("tenant %s: %v", tenant, err) })
}

func (s *store) failing(tenant string, fail func(tenant string, err error)) *views.Views {
	s.t.Helper()
	v := views.New(context.Background(), s.Feed, tenant, views.Options{OnFailure: fail})
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
		h.called("(" + feedtest.NameOf(object) + ")")
		return
	}
	h.called("+" + feedtest.NameOf(object))
}

func (h *handler) OnUpdate(_, object any) { h.called("=" + feedtest.NameOf(object)) }

func (h *handler) OnDelete(object any) { h.called("-" + feedtest.NameOf(object)) }

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
