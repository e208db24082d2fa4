package guard

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

// namespaceOfVC returns a namespace with the UID of a VirtualCluster; without
// it if uid is empty.
func namespaceOfVC(name, uid string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if uid != "" {
		ns.Annotations = map[string]string{names.VCUID: uid}
	}
	return ns
}

// guardOf returns the guard of a tenant in a super cluster with these
// namespaces, and the number of writes that it rejected. It has no client: a
// write that it allows panics.
func guardOf(uid types.UID, namespaces ...*corev1.Namespace) (g *Guard, refused *int) {
	refused = new(int)
	return &Guard{
		UID: uid,
		Namespace: func(_ context.Context, name string) (*corev1.Namespace, error) {
			for _, ns := range namespaces {
				if ns.Name == name {
					return ns, nil
				}
			}
			return nil, nil
		},
		Namespaced: func(obj runtime.Object) (bool, error) {
			_, bound := obj.(*rbacv1.ClusterRoleBinding)
			return !bound, nil
		},
		Rejected: func() { *refused++ },
	}, refused
}

// kindOf returns the kind of an object.
func kindOf(obj client.Object) *kinds.Kind {
	return &kinds.Kind{Object: obj.DeepCopyObject().(client.Object), GVK: obj.GetObjectKind().GroupVersionKind()}
}

// saying returns a custom resource that states a kind.
func saying(gvk schema.GroupVersionKind) client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace("blue-default")
	u.SetName("a")
	return u
}

func TestGuardRefusesWhatIsNotOfItsKind(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	binding := rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
	named := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	const ns = "blue-default"
	tests := map[string]struct {
		kind   *kinds.Kind
		states []client.Object
	}{
		"another kind without a type":    {kindOf(saying(widget)), []client.Object{saying(binding)}},
		"no kind without a type":         {kindOf(saying(widget)), []client.Object{saying(schema.GroupVersionKind{})}},
		"another version of the kind":    {kindOf(saying(widget)), []client.Object{saying(widget.GroupKind().WithVersion("v2"))}},
		"a type for one without":         {kindOf(saying(widget)), []client.Object{named(ns, "a")}},
		"another type":                   {kindOf(&corev1.ConfigMap{}), []client.Object{named(ns, "a")}},
		"a kind that becomes another":    {kindOf(saying(widget)), []client.Object{saying(binding), saying(widget)}},
		"an object that becomes another": {kindOf(&corev1.Pod{}), []client.Object{named(ns, "b"), named(ns, "a")}},
		"an object in another namespace": {kindOf(&corev1.Pod{}), []client.Object{named("green-default", "a"), named(ns, "a")}},
		"an object without a name":       {kindOf(&corev1.Pod{}), []client.Object{named(ns, "")}},
		"a name that is a path":          {kindOf(&corev1.Pod{}), []client.Object{named(ns, "../../green-default/pods/a")}},
		"a name that leads up":           {kindOf(&corev1.Pod{}), []client.Object{named(ns, "..")}},
		"a kind that is in no namespace": {kindOf(&rbacv1.ClusterRoleBinding{}), []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: named(ns, "a").ObjectMeta}}},
		"a pod that states kind Namespace": {kindOf(&corev1.Pod{}), []client.Object{&corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: named(ns, "a").ObjectMeta,
		}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g, refused := guardOf("blue-uid", namespaceOfVC(ns, "blue-uid"), namespaceOfVC("green-default", "green-uid"))
			if err := g.check(t.Context(), tt.kind, tt.states...); !errors.Is(err, ErrKind) {
				t.Errorf("check returned %v, want %v", err, ErrKind)
			}
			if *refused != 1 {
				t.Errorf("%d refused writes were counted, want 1", *refused)
			}
		})
	}
}

func TestGuardCheck(t *testing.T) {
	pod := func(namespace string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	}
	super := []*corev1.Namespace{
		namespaceOfVC("blue-default", "blue-uid"),
		namespaceOfVC("green-default", "green-uid"),
		namespaceOfVC("kube-system", ""),
		namespaceOfVC("empty", ""),
	}
	super[3].Annotations = map[string]string{names.VCUID: ""}
	super[2].Labels = map[string]string{names.VCUID: "blue-uid"} // labels do not decide about ownership

	tests := map[string]struct {
		uid     types.UID
		obj     client.Object
		want    error
		refused int
	}{
		"in its own namespace":                         {"blue-uid", pod("blue-default"), nil, 0},
		"in another tenant's":                          {"blue-uid", pod("green-default"), ErrForeign, 1},
		"in one of no tenant":                          {"blue-uid", pod("kube-system"), ErrForeign, 1},
		"in one that is not there":                     {"blue-uid", pod("blue-other"), ErrNoNamespace, 0},
		"in one that was a predecessor's":              {"blue-uid-2", pod("blue-default"), ErrForeign, 1},
		"outside of namespaces":                        {"blue-uid", pod(""), ErrNoNamespace, 0},
		"its own namespace":                            {"blue-uid", namespaceOfVC("blue-default", "blue-uid"), nil, 0},
		"another tenant's namespace":                   {"blue-uid", namespaceOfVC("green-default", "green-uid"), ErrForeign, 1},
		"a namespace of no tenant":                     {"blue-uid", namespaceOfVC("kube-system", ""), ErrForeign, 1},
		"a namespace is what it is, not what is known": {"blue-uid", namespaceOfVC("blue-default", "green-uid"), ErrForeign, 1},
		"no UID, in a namespace of no tenant":          {"", pod("kube-system"), ErrForeign, 1},
		"no UID, in one with an empty UID":             {"", pod("empty"), ErrForeign, 1},
		"no UID, a namespace of no tenant":             {"", namespaceOfVC("kube-system", ""), ErrForeign, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g, refused := guardOf(tt.uid, super...)
			if err := g.check(t.Context(), kindOf(tt.obj), tt.obj); !errors.Is(err, tt.want) {
				t.Errorf("check returned %v, want %v", err, tt.want)
			}
			if *refused != tt.refused {
				t.Errorf("%d refused writes were counted, want %d", *refused, tt.refused)
			}
		})
	}
}

func TestGuardThatCannotSeeNamespacesRefuses(t *testing.T) {
	broken := errors.New("broken")
	g := &Guard{UID: "blue-uid", Namespace: func(context.Context, string) (*corev1.Namespace, error) { return nil, broken }}
	if err := g.check(t.Context(), kindOf(kindstest.Version("1")), kindstest.Version("1")); !errors.Is(err, broken) {
		t.Errorf("check returned %v, want %v", err, broken)
	}
}

// TestGuardStopsEveryWrite checks that every write is rejected; an allowed
// write would panic because there is no client.
func TestGuardStopsEveryWrite(t *testing.T) {
	own := kindstest.Version("1")
	own.Namespace = "blue-default"
	foreign := kindstest.Version("1")
	foreign.Namespace = "green-default"
	writes := map[string]func(context.Context, *Guard) error{
		"create": func(ctx context.Context, g *Guard) error { return g.Create(ctx, kindOf(foreign), foreign) },
		"remove": func(ctx context.Context, g *Guard) error { return g.Delete(ctx, kindOf(foreign), foreign, nil) },
		"patch":  func(ctx context.Context, g *Guard) error { return g.Patch(ctx, kindOf(foreign), foreign, foreign) },
		"patch, although it claims to be elsewhere": func(ctx context.Context, g *Guard) error {
			return g.Patch(ctx, kindOf(own), own, foreign)
		},
		"patch of another's namespace, although it would become the tenant's": func(ctx context.Context, g *Guard) error {
			return g.Patch(ctx, kindOf(&corev1.Namespace{}), namespaceOfVC("green-default", "blue-uid"), namespaceOfVC("green-default", "green-uid"))
		},
		"remove another's namespace": func(ctx context.Context, g *Guard) error {
			return g.Delete(ctx, kindOf(&corev1.Namespace{}), namespaceOfVC("green-default", "green-uid"), nil)
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			g, refused := guardOf("blue-uid", namespaceOfVC("blue-default", "blue-uid"), namespaceOfVC("green-default", "green-uid"))
			if err := write(t.Context(), g); !errors.Is(err, ErrForeign) {
				t.Errorf("the guard returned %v, want %v", err, ErrForeign)
			}
			if *refused != 1 {
				t.Errorf("%d refused writes were counted, want 1", *refused)
			}
		})
	}
}
