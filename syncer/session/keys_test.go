package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// superWith returns a super cluster whose caches have these objects, and in it
// namespaces of the tenant, shop, and of another.
func superWith(k *kinds.Kind, objects ...client.Object) *session.SuperCluster {
	namespaces := kindstest.Typed(kinds.Down[*corev1.Namespace]{
		Name: session.NamespaceKind, Object: &corev1.Namespace{}, List: &corev1.NamespaceList{},
	})
	of := cachestest.NewReader()
	cachestest.Hold(of, namespaces, namespace("super-shop", kindstest.Blue().Key), namespace("super-other", "another"))
	if k.Name != namespaces.Name {
		cachestest.Hold(of, k, objects...)
	}
	return &session.SuperCluster{
		Caches:  map[kinds.Source]*caches.Reader{kinds.Copies: of},
		Builtin: map[string]*kinds.Kind{namespaces.Name: namespaces, k.Name: k},
	}
}

// namespace returns a namespace of the super cluster that is the copy of shop.
func namespace(name, cluster string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{names.Cluster: cluster, names.Namespace: "shop"},
	}}
}

// in returns an object in a namespace of the super cluster, a copy for a tenant
// if a cluster key is given.
func in[T client.Object](obj T, namespace, name, cluster string) T {
	obj.SetNamespace(namespace)
	obj.SetName(name)
	if cluster != "" {
		obj.SetAnnotations(map[string]string{names.Cluster: cluster, names.Namespace: "shop"})
	}
	return obj
}

// sessionOf returns the session of the tenant in a super cluster.
func sessionOf(t *testing.T, super *session.SuperCluster) *session.Session {
	t.Helper()
	return session.Assemble(t.Context(), super, kindstest.Blue(), &session.TenantObjects{})
}

// TestEachSuperKey: copies belong to a tenant by their annotation, what is
// synced up by its namespace, and classes may be shown to every tenant.
func TestEachSuperKey(t *testing.T) {
	blue := kindstest.Blue().Key
	events := kinds.Up[*corev1.Event]{Name: "Event", Object: &corev1.Event{}, List: &corev1.EventList{}}
	volumes := kinds.Up[*corev1.PersistentVolume]{
		Name: "PersistentVolume", Object: &corev1.PersistentVolume{}, List: &corev1.PersistentVolumeList{},
		Namespace: func(super *corev1.PersistentVolume) string { return super.Spec.StorageClassName },
	}
	classes := kinds.Up[*storagev1.StorageClass]{
		Name: "StorageClass", Object: &storagev1.StorageClass{}, List: &storagev1.StorageClassList{}, Class: true,
	}
	volume := func(name, namespace string) *corev1.PersistentVolume {
		v := in(&corev1.PersistentVolume{}, "", name, "")
		v.Spec.StorageClassName = namespace
		return v
	}
	tests := map[string]struct {
		kind    kinds.Flow
		objects []client.Object
		want    []string
	}{
		"copies": {
			kindstest.Plain(),
			[]client.Object{
				in(&corev1.Pod{}, "super-shop", "web", blue), in(&corev1.Pod{}, "super-shop", "foreign", ""),
				in(&corev1.Pod{}, "super-other", "theirs", "another"),
			},
			[]string{"shop/web"},
		},
		"what is in a namespace of the tenant": {
			events,
			[]client.Object{in(&corev1.Event{}, "super-shop", "started", ""), in(&corev1.Event{}, "super-other", "theirs", "")},
			[]string{"shop/started"},
		},
		"what belongs to a namespace of the tenant": {
			volumes, []client.Object{volume("data", "super-shop"), volume("theirs", "super-other")}, []string{"/data"},
		},
		"classes": {
			classes,
			[]client.Object{in(&storagev1.StorageClass{}, "", "fast", ""), in(&storagev1.StorageClass{}, "", "slow", "")},
			[]string{"/fast", "/slow"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k := kindstest.Typed(tt.kind)
			var got []string
			err := sessionOf(t, superWith(k, tt.objects...)).EachSuperKey(t.Context(), k, func(key client.ObjectKey) {
				got = append(got, key.Namespace+"/"+key.Name)
			})
			slices.SortFunc(got, strings.Compare)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("keys, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestSuperObject: a write is known before the cache shows it.
func TestSuperObject(t *testing.T) {
	k := kindstest.Typed(kindstest.Plain())
	cached := in(&corev1.Pod{}, "super-shop", "web", kindstest.Blue().Key)
	cached.UID, cached.ResourceVersion = "uid", "7"
	s, key := sessionOf(t, superWith(k, cached)), client.ObjectKeyFromObject(cached)
	want := func(resourceVersion string) {
		t.Helper()
		got, err := s.SuperObject(t.Context(), k, key)
		if err != nil || got == nil || got.GetResourceVersion() != resourceVersion {
			t.Errorf("the object is %v, %v; want version %s", got, err, resourceVersion)
		}
	}
	want("7")
	written := cached.DeepCopy()
	written.ResourceVersion = "8"
	s.SuperRecent.Put(k.Name, written)
	want("8")
	s.SuperRecent.Remove(k.Name, written)
	if got, err := s.SuperObject(t.Context(), k, key); got != nil || err != nil {
		t.Errorf("after its deletion the object is %v, %v", got, err)
	}
	if got, err := s.SuperNamespace(t.Context(), "super-shop"); err != nil || got == nil {
		t.Errorf("the namespace is %v, %v", got, err)
	}
	if got, err := s.SuperNamespace(t.Context(), "none"); err != nil || got != nil {
		t.Errorf("a namespace that does not exist is %v, %v", got, err)
	}
}

func TestTokensKey(t *testing.T) {
	kept := in(&corev1.Secret{}, "super-shop", names.TokenSecret("web"), kindstest.Blue().Key)
	kept.Annotations[names.TokensOf] = "web"
	if got, want := session.TokensKey(kept), (client.ObjectKey{Namespace: "shop", Name: "web"}); got != want {
		t.Errorf("the tokens are those of %v, want %v", got, want)
	}
}
