package own

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// name is that of the own object, of which each namespace but one has one.
const (
	name = "fence"
	open = "open"
)

// superCluster has one object, in its cache or only in its apiserver, and notes
// what is written.
type superCluster struct {
	cached, live client.Object
	read         []client.ObjectKey
	written      []string
	last         client.Object
	err          error // of each write
}

func (c *superCluster) SuperObject(_ context.Context, _ *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	c.read = append(c.read, key)
	return c.cached, nil
}

func (c *superCluster) LiveCopy(context.Context, *kinds.Kind, client.ObjectKey) (client.Object, error) {
	return c.live, nil
}

func (c *superCluster) EachIn(context.Context, *kinds.Kind, string, func(client.Object)) error {
	return nil
}

func (c *superCluster) write(verb string, obj client.Object) error {
	c.written, c.last = append(c.written, verb+" "+obj.GetName()), obj
	return c.err
}

func (c *superCluster) CreateOwn(_ context.Context, _ *kinds.Kind, obj client.Object) error {
	if err := c.write("create", obj); err != nil || c.live == nil {
		return err
	}
	return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, obj.GetName())
}

func (c *superCluster) PatchOwn(_ context.Context, _ *kinds.Kind, obj, _ client.Object) error {
	return c.write("patch", obj)
}

func (c *superCluster) Delete(_ context.Context, _ *kinds.Kind, obj client.Object, _ *int64) error {
	return c.write("delete", obj)
}

// In returns a view that knows the namespace.
func (c *superCluster) In(_ context.Context, namespace string) kinds.View {
	return kinds.View{Tenant: kindstest.Blue(), Namespace: namespace}
}

// fenced is a kind of which the syncer has an object of its own.
func fenced() *kinds.Kind {
	k := kindstest.Needed()
	k.Own = []kinds.Own[*corev1.ConfigMap]{{Name: name, Desired: func(v kinds.View) *corev1.ConfigMap {
		if v.Namespace == open {
			return nil
		}
		return &corev1.ConfigMap{Data: map[string]string{"of": v.Namespace}}
	}}}
	return kindstest.Typed(k)
}

func syncerOf(c *superCluster) *Syncer {
	k := fenced()
	return &Syncer{
		declared: func() iter.Seq2[*kinds.Kind, kinds.Own[client.Object]] {
			return func(yield func(*kinds.Kind, kinds.Own[client.Object]) bool) { yield(k, k.Down.Own[0]) }
		},
		networks: networks{declared: func() iter.Seq2[*kinds.Kind, *kinds.OwnInNetworks[client.Object]] {
			return func(func(*kinds.Kind, *kinds.OwnInNetworks[client.Object]) bool) {}
		}},
		view: c, reader: c, writer: c, recent: caches.NewRecent(), locks: &caches.KeyLocks{}, identity: kindstest.Blue,
	}
}

// fence is the own object of the namespace default as it should be, with
// changes.
func fence(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	obj := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-71a1c3-blue-default", Name: name, UID: "uid",
			Labels: map[string]string{names.VCName: "blue", names.VCNamespace: ""},
		},
		Data: map[string]string{"of": "default"},
	}
	for _, f := range change {
		f(obj)
	}
	return obj
}

func changed(obj *corev1.ConfigMap) { obj.Data = map[string]string{"of": "nothing"} }

func unlabeled(obj *corev1.ConfigMap) { obj.Labels = nil }

func deleting(obj *corev1.ConfigMap) { obj.DeletionTimestamp = new(metav1.Now()) }

// copied makes an object the copy of a tenant's of the name.
func copied(obj *corev1.ConfigMap) {
	obj.Annotations = map[string]string{names.Cluster: kindstest.Blue().Key, names.UID: "tenant-uid"}
}

func TestIsOwn(t *testing.T) {
	k := fenced()
	for of, tt := range map[string]struct {
		obj  client.Object
		want bool
	}{
		"an own object":          {fence(), true},
		"a copy of the name":     {fence(copied), false},
		"an object of no tenant": {fence(func(obj *corev1.ConfigMap) { obj.Name = "other" }), false},
	} {
		if got := IsOwn(k, tt.obj); got != tt.want {
			t.Errorf("%s is own: %t, want %t", of, got, tt.want)
		}
	}
}

// TestSync: one write makes an own object what it should be, and none is sent
// when it is. Differs, which the patrol calls, agrees.
func TestSync(t *testing.T) {
	tests := map[string]struct {
		namespace    string
		cached, live client.Object
		written      []string
		fails        bool
	}{
		"missing":                             {namespace: "default", written: []string{"create fence"}},
		"up to date":                          {namespace: "default", cached: fence()},
		"changed":                             {namespace: "default", cached: fence(changed), written: []string{"patch fence"}},
		"being deleted":                       {namespace: "default", cached: fence(changed, deleting)},
		"without labels, so not in the cache": {namespace: "default", live: fence(unlabeled), written: []string{"create fence", "patch fence"}},
		"a copy has its name":                 {namespace: "default", cached: fence(copied), written: []string{"delete fence"}, fails: true},
		"none, and none is desired":           {namespace: open},
		"one, and none is desired":            {namespace: open, cached: fence(), written: []string{"delete fence"}},
		"deleted, since none is desired":      {namespace: open, cached: fence(deleting)},
	}
	for of, tt := range tests {
		t.Run(of, func(t *testing.T) {
			c := &superCluster{cached: tt.cached, live: tt.live}
			s, namespace := syncerOf(c), kindstest.Typed(kindstest.Plain())
			namespace.Name = session.NamespaceKind
			o := session.Objects{Key: client.ObjectKey{Name: tt.namespace}}
			if differs, err := s.Differs(t.Context(), namespace, o); err != nil || differs != (tt.written != nil) {
				t.Errorf("differs: %t, %v; want %t", differs, err, tt.written != nil)
			}
			if err := s.Sync(t.Context(), namespace, o); (err != nil) != tt.fails {
				t.Errorf("the error is %v, want one: %t", err, tt.fails)
			}
			if diff := cmp.Diff(tt.written, c.written); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			for _, key := range c.read {
				if want := (client.ObjectKey{Namespace: "team-71a1c3-blue-" + tt.namespace, Name: name}); key != want {
					t.Errorf("%v is read, want %v", key, want)
				}
			}
		})
	}
}

// TestSyncWrites: what is written has the labels by which caches find it, and
// is known until the cache shows it.
func TestSyncWrites(t *testing.T) {
	for of, c := range map[string]*superCluster{
		"created": {}, "changed": {cached: fence(changed)}, "without labels": {live: fence(unlabeled)},
	} {
		t.Run(of, func(t *testing.T) {
			s := syncerOf(c)
			if err := s.sync(t.Context(), fenced(), fenced().Down.Own[0], "default"); err != nil {
				t.Fatal(err)
			}
			want := fence()
			want.UID = c.last.GetUID()
			if diff := cmp.Diff(client.Object(want), c.last, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			if s.recent.Latest("ConfigMap", client.ObjectKeyFromObject(want), nil) == nil {
				t.Error("the write is not remembered")
			}
		})
	}
}

// TestSyncFails: what the super cluster rejects is rejected, what may pass is
// retried, and neither is remembered as written.
func TestSyncFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, errors.New("exceeded quota"))
	for of, tt := range map[string]struct {
		c        superCluster
		rejected bool
	}{
		"create, rejected": {superCluster{err: forbidden}, true},
		"create, failed":   {superCluster{err: errors.New("connection refused")}, false},
		"patch, rejected":  {superCluster{cached: fence(changed), err: forbidden}, true},
		"patch, failed":    {superCluster{cached: fence(changed), err: errors.New("connection refused")}, false},
	} {
		t.Run(of, func(t *testing.T) {
			s := syncerOf(&tt.c)
			err := s.sync(t.Context(), fenced(), fenced().Down.Own[0], "default")
			if err == nil || pending.IsRejection(err) != tt.rejected {
				t.Errorf("%v is a rejection: %t, want %t", err, pending.IsRejection(err), tt.rejected)
			}
			if s.recent.Latest("ConfigMap", client.ObjectKeyFromObject(fence()), nil) != nil {
				t.Error("a failed write is remembered")
			}
		})
	}
}

// TestEnsure: a namespace gets the own objects that it lacks. Those that exist
// are not compared, since each object of the namespace leads here.
func TestEnsure(t *testing.T) {
	for of, tt := range map[string]struct {
		cached  client.Object
		written []string
		fails   bool
	}{
		"missing":             {nil, []string{"create fence"}, false},
		"up to date":          {fence(), nil, false},
		"changed":             {fence(changed), nil, false},
		"being deleted":       {fence(deleting), nil, false},
		"a copy has its name": {fence(copied), []string{"delete fence"}, true},
	} {
		t.Run(of, func(t *testing.T) {
			c := &superCluster{cached: tt.cached}
			if err := syncerOf(c).Ensure(t.Context(), "default"); (err != nil) != tt.fails {
				t.Errorf("the error is %v, want one: %t", err, tt.fails)
			}
			if diff := cmp.Diff(tt.written, c.written); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOtherKinds: only the reconcile of a namespace syncs its own objects.
func TestOtherKinds(t *testing.T) {
	c := &superCluster{}
	s, k, o := syncerOf(c), kindstest.Typed(kindstest.Plain()), session.Objects{Key: kindstest.WebKey()}
	if differs, err := s.Differs(t.Context(), k, o); differs || err != nil {
		t.Errorf("differs: %t, %v", differs, err)
	}
	if err := s.Sync(t.Context(), k, o); err != nil || c.written != nil {
		t.Errorf("%v is written, %v", c.written, err)
	}
}
