package informer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// inNamespaces returns the options of a group whose kinds are namespaced.
func inNamespaces() GroupOptions {
	return GroupOptions{
		Rejected:   func(string, string) {},
		Exceeded:   func(error) {},
		Namespaced: func(runtime.Object) (bool, error) { return true, nil },
	}
}

// identified sets the UID of an object.
func identified(c *corev1.ConfigMap) *corev1.ConfigMap {
	c.UID = types.UID("uid-" + c.Name)
	return c
}

// rejections are the reasons that a group reports.
type rejections struct {
	mu      sync.Mutex
	reasons []string
}

func (r *rejections) add(_, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = append(r.reasons, reason)
}

func (r *rejections) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reasons)
}

func TestCheck(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	good := func(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a.b", UID: "0a-1", ResourceVersion: "7"}}
		for _, f := range change {
			f(c)
		}
		return c
	}
	custom := func(gvk schema.GroupVersionKind) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetNamespace("shop")
		u.SetName("a")
		u.SetUID("1")
		u.SetResourceVersion("7")
		return u
	}
	typed, of := checker{&corev1.ConfigMap{}, true}, checker{custom(widget), true}
	long := strings.Repeat("x", maxAnnotations+1)
	tests := map[string]struct {
		checker checker
		obj     any
		want    string
	}{
		"an object":                      {typed, good(), ""},
		"one that states its kind":       {typed, good(func(c *corev1.ConfigMap) { c.Kind = "ConfigMap" }), ""},
		"one that states another kind":   {typed, good(func(c *corev1.ConfigMap) { c.Kind = "Secret" }), ReasonKind},
		"another type":                   {typed, &corev1.Secret{ObjectMeta: good().ObjectMeta}, ReasonKind},
		"a status":                       {typed, &metav1.Status{}, ReasonKind},
		"nothing":                        {typed, nil, ReasonKind},
		"a custom resource":              {of, custom(widget), ""},
		"one of another kind":            {of, custom(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}), ReasonKind},
		"one of another version":         {of, custom(widget.GroupKind().WithVersion("v2")), ReasonKind},
		"no name":                        {typed, good(func(c *corev1.ConfigMap) { c.Name = "" }), ReasonName},
		"a name that is a path":          {typed, good(func(c *corev1.ConfigMap) { c.Name = "../../kube-system/secrets/a" }), ReasonName},
		"a name that leads up":           {typed, good(func(c *corev1.ConfigMap) { c.Name = ".." }), ReasonName},
		"a name with a query":            {typed, good(func(c *corev1.ConfigMap) { c.Name = "a?watch=1" }), ReasonName},
		"a long name":                    {typed, good(func(c *corev1.ConfigMap) { c.Name = strings.Repeat("a", 254) }), ReasonName},
		"no namespace":                   {typed, good(func(c *corev1.ConfigMap) { c.Namespace = "" }), ReasonNamespace},
		"a namespace that is a path":     {typed, good(func(c *corev1.ConfigMap) { c.Namespace = "a/b" }), ReasonNamespace},
		"a namespace where none belongs": {checker{&corev1.ConfigMap{}, false}, good(), ReasonNamespace},
		"no UID":                         {typed, good(func(c *corev1.ConfigMap) { c.UID = "" }), ReasonIdentity},
		"a UID with a line break":        {typed, good(func(c *corev1.ConfigMap) { c.UID = "a\nb" }), ReasonIdentity},
		"a long UID":                     {typed, good(func(c *corev1.ConfigMap) { c.UID = types.UID(strings.Repeat("a", 65)) }), ReasonIdentity},
		"no resource version":            {typed, good(func(c *corev1.ConfigMap) { c.ResourceVersion = "" }), ReasonIdentity},
		"large annotations":              {typed, good(func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": long} }), ReasonMetadata},
		"large labels":                   {typed, good(func(c *corev1.ConfigMap) { c.Labels = map[string]string{long: ""} }), ReasonMetadata},
		"many finalizers":                {typed, good(func(c *corev1.ConfigMap) { c.Finalizers = make([]string, 1001) }), ReasonMetadata},
		"many owners":                    {typed, good(func(c *corev1.ConfigMap) { c.OwnerReferences = make([]metav1.OwnerReference, 1001) }), ReasonMetadata},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.checker.check(tt.obj); got != tt.want {
				t.Errorf("got reason %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAGroupDropsWhatNoApiserverShows(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		told, handler := &rejections{}, newJournal()
		opts := inNamespaces()
		opts.Rejected = told.add
		source.Add(identified(configMap("a", "1")))
		source.Add(configMap("b", "without a UID"))
		group := NewGroup(ctx, opts)
		i := group.New(source, &corev1.ConfigMap{}, 0, nil)
		join(t, i, handler)
		i.RunWithContext(ctx)
		synctest.Wait()
		expect(t, handler.taken(), "initial add a=1 with managed fields")
		source.Add(configMap("c", "without a UID"))
		source.Add(identified(configMap("d", "1")))
		source.Modify(configMap("a", "without a UID"))
		synctest.Wait()
		expect(t, handler.taken(), "add d=1 with managed fields")
		if got := told.all(); !slices.Equal(got, []string{ReasonIdentity, ReasonIdentity, ReasonIdentity}) {
			t.Errorf("rejections: %q", got)
		}
	})
}

// TestAListThatIsNoneDeletesNothing checks an answer of another kind: client-go
// leaves the list empty, as if all objects had been deleted.
func TestAListThatIsNoneDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		whole := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
		object := identified(configMap("a", "1"))
		object.ResourceVersion = "4"
		whole.Items = append(whole.Items, *object)
		lies, watches := false, make(chan *watch.FakeWatcher, 1)
		source := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				if lies {
					return &corev1.ConfigMapList{}, nil
				}
				return whole, nil
			},
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				if options.SendInitialEvents != nil {
					return nil, errors.New("lists are not watched")
				}
				w := watch.NewFake()
				watches <- w
				return w, nil
			},
		}
		told, handler := &rejections{}, newJournal()
		opts := inNamespaces()
		opts.Rejected = told.add
		group := NewGroup(ctx, opts)
		i := group.New(source, &corev1.ConfigMap{}, 0, nil)
		join(t, i, handler)
		i.RunWithContext(ctx)
		synctest.Wait()
		expect(t, handler.taken(), "initial add a=1 with managed fields")
		lies = true
		w := <-watches
		w.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410})
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, handler.taken())
		if got := told.all(); len(got) == 0 || got[0] != ReasonKind {
			t.Errorf("rejections: %q", got)
		}
		cancel()
		group.Wait()
	})
}

func TestAGroupHasABudget(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		told, handler := &rejections{}, newJournal()
		var exceeded []error
		opts := inNamespaces()
		opts.Memory, opts.Rejected = 4<<10, told.add
		opts.Exceeded = func(err error) { exceeded = append(exceeded, err) }
		group := NewGroup(ctx, opts)
		i := group.New(source, &corev1.ConfigMap{}, 0, nil)
		join(t, i, handler)
		i.RunWithContext(ctx)
		synctest.Wait()
		large := strings.Repeat("x", 1500)
		for _, name := range []string{"a", "b", "c", "d"} {
			source.Add(identified(configMap(name, large)))
		}
		synctest.Wait()
		if got := stored(i); len(got) != 2 {
			t.Errorf("%d objects are kept, want 2", len(got))
		}
		if memory, ok := errors.AsType[*MemoryError](errors.Join(exceeded...)); !ok || len(exceeded) != 1 || memory.Kind != "ConfigMap" {
			t.Errorf("exceeded: %v", exceeded)
		}
		// Deleted objects make room, and an update counts once.
		source.Delete(identified(configMap("a", large)))
		synctest.Wait()
		source.Add(identified(configMap("e", large)))
		source.Modify(identified(configMap("e", large)))
		synctest.Wait()
		if got := stored(i); len(got) != 2 || got["e"] == "" {
			t.Errorf("%d objects are kept, want b and e", len(got))
		}
	})
}
