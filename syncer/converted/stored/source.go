package stored

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// source counts the objects of one resource.
type source struct {
	client   rest.Interface
	resource schema.GroupVersionResource
	// selector selects the objects by labels.
	selector string
	// as is the user of the super cluster who reads them; empty for that of the client.
	as string
	// tenantOf returns the tenant of an object.
	tenantOf func(*object) string
	usage    *Usage
	// changed is called with each object that is created or changed, and deleted
	// with the UID of each that is deleted. They may be nil.
	changed func(*object)
	deleted func(types.UID)

	synced atomic.Bool
	mu     sync.Mutex
	known  map[types.UID]entry
}

// entry is an object that is counted.
type entry struct {
	tenant, version string
	bytes           int64
}

func (e entry) amount() Amount {
	if e.tenant == "" {
		return Amount{}
	}
	return Amount{Objects: 1, Bytes: e.bytes}
}

// run counts until ctx is done.
func (s *source) run(ctx context.Context) {
	if s.known == nil {
		s.known = map[types.UID]entry{}
	}
	lists := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	cache.NewReflectorWithOptions(lists, nil, s, cache.ReflectorOptions{
		Name: "stored " + s.resource.String(), TypeDescription: s.resource.String(),
	}).RunWithContext(ctx)
}

// forget forgets what it has counted.
func (s *source) forget() { _ = s.Replace(nil, "") }

func (s *source) request(opts metav1.ListOptions) *rest.Request {
	opts.LabelSelector = s.selector
	path := []string{"/apis", s.resource.Group, s.resource.Version, s.resource.Resource}
	if s.resource.Group == "" {
		path = []string{"/api", s.resource.Version, s.resource.Resource}
	}
	r := s.client.Get().AbsPath(path...).VersionedParams(&opts, metav1.ParameterCodec).SetHeader("Accept", runtime.ContentTypeJSON)
	if s.as != "" {
		r.SetHeader("Impersonate-User", s.as)
	}
	return r
}

func (s *source) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	data, err := s.request(opts).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	found := &list{}
	return found, json.Unmarshal(data, found)
}

func (s *source) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	body, err := s.request(opts).Stream(ctx)
	if err != nil {
		return nil, err
	}
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
	return watch.NewStreamWatcher(&events{body: body, decoder: json.NewDecoder(body)}, reporter), nil
}

// Add implements cache.ReflectorStore.
func (s *source) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *source) Update(obj any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockedSet(obj.(*object))
	return nil
}

func (s *source) lockedSet(o *object) {
	was, is := s.known[o.UID], entry{tenant: s.tenantOf(o), version: o.ResourceVersion, bytes: o.size}
	is.bytes = max(is.bytes, s.least(o.UID, was, is))
	if was.tenant != is.tenant && was.tenant != "" {
		s.usage.observe(was.tenant, o.UID, o.ResourceVersion, was.amount(), Amount{})
		was = entry{}
	}
	if is.tenant == "" {
		delete(s.known, o.UID)
		return
	}
	s.known[o.UID] = is
	s.usage.observe(is.tenant, o.UID, o.ResourceVersion, was.amount(), is.amount())
	if s.changed != nil {
		s.changed(o)
	}
}

// least returns the size that an object has at least, whatever is shown of it: a
// conversion may hide fields, and so may the schema of a tenant's CRD, for minutes
// after it has changed. A custom resource becomes smaller only by a write of which
// the size is known: other writes, to the subresource scale and by controllers,
// change little.
func (s *source) least(uid types.UID, was, is entry) int64 {
	known := int64(0)
	if was.tenant == is.tenant {
		known = was.bytes
	}
	switch {
	case was.version == is.version:
		return known
	case s.as == "":
		return 0
	}
	written, found := s.usage.written(is.tenant, uid, was.version, is.version)
	if found || !s.usage.isComplete() {
		return written
	}
	return known
}

// Delete implements cache.ReflectorStore.
func (s *source) Delete(obj any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockedForget(obj.(*object).UID)
	return nil
}

func (s *source) lockedForget(uid types.UID) {
	was, ok := s.known[uid]
	if !ok {
		return
	}
	delete(s.known, uid)
	s.usage.observe(was.tenant, uid, "", was.amount(), Amount{})
	if s.deleted != nil {
		s.deleted(uid)
	}
}

// Replace implements cache.ReflectorStore.
func (s *source) Replace(all []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	exist := make(map[types.UID]bool, len(all))
	for _, each := range all {
		o := each.(*object)
		exist[o.UID] = true
		s.lockedSet(o)
	}
	for uid := range s.known {
		if !exist[uid] {
			s.lockedForget(uid)
		}
	}
	s.synced.Store(true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (*source) Resync() error { return nil }
