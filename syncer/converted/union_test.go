package converted

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// fakeCache reads from a fake client, and has one informer.
type fakeCache struct {
	cache.Cache

	reader   client.Reader
	informer *fakeInformer
	indexed  []string
}

func newFakeCache(objects ...client.Object) *fakeCache {
	return &fakeCache{reader: fake.NewClientBuilder().WithObjects(objects...).Build(), informer: &fakeInformer{}}
}

func (f *fakeCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return f.reader.Get(ctx, key, obj, opts...)
}

func (f *fakeCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.reader.List(ctx, list, opts...)
}

func (f *fakeCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return f.informer, nil
}

func (f *fakeCache) IndexField(_ context.Context, _ client.Object, field string, _ client.IndexerFunc) error {
	f.indexed = append(f.indexed, field)
	return nil
}

// fakeInformer calls its handler with what is added to it.
type fakeInformer struct {
	cache.Informer

	handlers []toolscache.ResourceEventHandler
}

func (f *fakeInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	f.handlers = append(f.handlers, handler)
	return fakeRegistration{}, nil
}

type fakeRegistration struct {
	toolscache.ResourceEventHandlerRegistration
}

func TestUnion(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "a", Name: name} }
	super := newFakeCache(&corev1.Pod{ObjectMeta: named("copy")}, &corev1.Secret{ObjectMeta: named("copy")})
	objects := newFakeCache(&corev1.Pod{ObjectMeta: named("object")}, &corev1.Secret{ObjectMeta: named("object")})
	u := NewUnion(super, objects, clientgoscheme.Scheme, schema.GroupKind{Kind: "Pod"})
	for name, obj := range map[string]client.Object{"copy": &corev1.Pod{}, "object": &corev1.Pod{}} {
		if err := u.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: name}, obj); err != nil || obj.GetName() != name {
			t.Errorf("get pod %s: %v", name, err)
		}
	}
	if err := u.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "none"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod of neither: %v", err)
	}
	if err := u.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "object"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("a kind of which it has the copies alone: %v", err)
	}
	pods, secrets := &corev1.PodList{}, &corev1.SecretList{}
	if err := u.List(t.Context(), pods); err != nil || len(pods.Items) != 2 {
		t.Errorf("lists %d pods, %v", len(pods.Items), err)
	}
	if err := u.List(t.Context(), secrets); err != nil || len(secrets.Items) != 1 || secrets.Items[0].Name != "copy" {
		t.Errorf("lists %d secrets, %v", len(secrets.Items), err)
	}
	for _, obj := range []client.Object{&corev1.Pod{}, &corev1.Secret{}} {
		if err := u.IndexField(t.Context(), obj, "a", nil); err != nil {
			t.Error(err)
		}
	}
	if len(super.indexed) != 2 || len(objects.indexed) != 1 {
		t.Errorf("%v and %v are indexed", super.indexed, objects.indexed)
	}
}

func TestUnionOfEvents(t *testing.T) {
	super, objects := newFakeCache(), newFakeCache()
	u := NewUnion(super, objects, clientgoscheme.Scheme, schema.GroupKind{Kind: "Pod"})
	informer, err := u.GetInformer(t.Context(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { seen = append(seen, obj.(*corev1.Pod).Name) },
	}); err != nil {
		t.Fatal(err)
	}
	for name, each := range map[string]*fakeCache{"copy": super, "object": objects} {
		each.informer.handlers[0].OnAdd(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, false)
	}
	if slices.Sort(seen); !slices.Equal(seen, []string{"copy", "object"}) {
		t.Errorf("there are events of %v", seen)
	}
	if alone, err := u.GetInformer(t.Context(), &corev1.Secret{}); err != nil || alone != cache.Informer(super.informer) {
		t.Errorf("the informer of another kind is %v, %v", alone, err)
	}
}
