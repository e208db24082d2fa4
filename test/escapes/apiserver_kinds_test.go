package escapes

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// The custom resource of these specs.
const (
	widgetGroup    = "escapes.example.com"
	widgetResource = "widgets"
)

// widget is a custom resource with a spec that could also be that of other kinds.
func widget(ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "red"}}}
	u.SetAPIVersion(widgetGroup + "/v1")
	u.SetKind("Widget")
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// allowWidgets defines the custom resource in the super cluster and gives the
// syncer rights that it does not have by default: to write custom resources,
// and to make anyone an admin.
func allowWidgets(ctx context.Context) {
	GinkgoHelper()
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "vc-syncer-escapes", Labels: map[string]string{rbac.AggregateToSyncer: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{widgetGroup, rbacv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: widgetResource + "." + widgetGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: widgetResource, Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything},
				}},
			}},
		},
	}
	for _, obj := range []client.Object{role, definition} {
		kit.Create(ctx, super.Client, obj)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, obj)).To(Succeed()) })
	}
}

// asBinding makes an object a binding that makes a tenant an admin of the super
// cluster.
func asBinding(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	object["apiVersion"], object["kind"] = rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"
	object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "cluster-admin"}
	object["subjects"] = []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": "mallory"}}
	object["metadata"] = map[string]any{
		"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"], "resourceVersion": meta["resourceVersion"],
	}
}

var _ = Describe("Objects of a tenant's apiserver", Ordered, func() {
	const ns = "lies"
	var (
		mallory *local.Tenant
		hostile *local.Hostile
	)

	BeforeAll(func(ctx SpecContext) {
		allowWidgets(ctx)
		mallory, hostile = hostileTenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{CustomResources: []tenancyv1alpha1.CustomResourceSync{{
				Group: widgetGroup, Version: "v1", Resource: widgetResource, Direction: tenancyv1alpha1.SyncDown,
			}}}
		})
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		shouldSync(ctx, mallory, ns, "honest")
		first := widget(ns, "first")
		Eventually(func(ctx context.Context) error { return mallory.Client.Create(ctx, first.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, first))
	})

	// binding is the binding that an attack wants.
	binding := func(name string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}

	attack("a list of custom resources with items of kind ClusterRoleBinding", "review: an External tenant became admin", func(ctx SpecContext) {
		obj := widget(ns, "listed")
		kit.Create(ctx, mallory.Client, obj)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, obj))
		before := countOf(rejected("Kind"))
		answering(hostile, local.Lists(widgetResource), local.NoStream(local.RewriteItems(asBinding)))
		expireWatches(hostile, widgetResource)
		Eventually(rejected("Kind")).WithTimeout(relisted).Should(BeNumerically(">", before))
		kit.ShouldStayAbsent(ctx, super.Client, binding("listed"))
	})

	attack("watch events of kind ClusterRoleBinding for custom resources", "review: an External tenant became admin", func(ctx SpecContext) {
		// Lists are honest until the syncer watches: it would drop the forged object from a list, and the watch would begin after it.
		var watches atomic.Int32
		var begun atomic.Bool
		honest := local.NoStream(func(w http.ResponseWriter, r *http.Request, behind http.Handler) { behind.ServeHTTP(w, r) })
		forged := local.RewriteItems(asBinding)
		answering(hostile, local.Lists(widgetResource), func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
			if !begun.Load() && !onlyWatches(r) {
				honest(w, r, behind)
				return
			}
			watches.Add(1)
			defer watches.Add(-1)
			forged(w, r, behind)
		})
		Eventually(watches.Load).WithTimeout(relisted).Should(BeNumerically(">", 0))
		begun.Store(true)
		before := countOf(rejected("Event"))
		obj := widget(ns, "watched")
		kit.Create(ctx, mallory.Client, obj)
		Eventually(rejected("Event")).WithTimeout(relisted).Should(BeNumerically(">", before))
		kit.ShouldStayAbsent(ctx, super.Client, binding("watched"))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, obj))
	})

	attack("items of pods that say they are of kind ClusterRoleBinding", "review: mistyped items of typed lists", func(ctx SpecContext) {
		before := countOf(rejected("Kind"))
		answering(hostile, local.Lists("pods"), local.NoStream(local.RewriteItems(func(object map[string]any) {
			object["apiVersion"], object["kind"] = rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"
		})))
		p := kit.Pod(ns, "claims")
		kit.Create(ctx, mallory.Client, p)
		expireWatches(hostile, "pods")
		Eventually(rejected("Kind")).WithTimeout(relisted).Should(BeNumerically(">", before))
		kit.ShouldStayAbsent(ctx, super.Client, binding("claims"))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "claims"}}))
	})

	attack("a list of another kind in the place of the pods, which client-go takes for an empty one", "review: empty means mass deletion",
		func(ctx SpecContext) {
			p := kit.Pod(ns, "stays")
			kit.Create(ctx, mallory.Client, p)
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, p))
			copied := kit.SuperOf(mallory, p)
			Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
			before := countOf(rejected("Kind"))
			answering(hostile, local.Lists("pods"), local.NoStream(local.Status(http.StatusOK,
				`{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"9999999"},"items":[]}`)))
			expireWatches(hostile, "pods")
			Eventually(rejected("Kind")).WithTimeout(relisted).Should(BeNumerically(">", before))
			Consistently(kit.Read(ctx, super.Client, copied)).Should(And(
				HaveField("UID", copied.UID), HaveField("DeletionTimestamp", BeNil())))
		})

	attack("pods whose names are paths", "CVE-2018-1002105 and others: names as parts of paths", func(ctx SpecContext) {
		before := countOf(rejected("Name"))
		answering(hostile, local.Lists("pods"), local.NoStream(local.RewriteItems(func(object map[string]any) {
			object["metadata"].(map[string]any)["name"] = "../../kube-system/pods/x"
		})))
		expireWatches(hostile, "pods")
		Eventually(rejected("Name")).WithTimeout(relisted).Should(BeNumerically(">", before))
		Expect(kit.Get(ctx, super.Client, kit.Pod("kube-system", "x"))).To(MatchError(apierrors.IsNotFound, "not found"))
	})

	attack("pods without a namespace, or in one whose name is a path", "idea: keys of another scope", func(ctx SpecContext) {
		for _, name := range []string{"", "a/../kube-system"} {
			before := countOf(rejected("Namespace"))
			undo := hostile.On(local.Lists("pods"), local.NoStream(local.RewriteItems(func(object map[string]any) {
				object["metadata"].(map[string]any)["namespace"] = name
			})))
			expireWatches(hostile, "pods")
			Eventually(rejected("Namespace")).WithTimeout(relisted).Should(BeNumerically(">", before))
			undo()
		}
		pods := &corev1.PodList{}
		Expect(super.Client.List(ctx, pods, client.InNamespace("kube-system"))).To(Succeed())
		Expect(pods.Items).To(BeEmpty())
	})

	attack("pods without a UID", "idea: a copy that belongs to no object", func(SpecContext) {
		before := countOf(rejected("Identity"))
		answering(hostile, local.Lists("pods"), local.NoStream(local.RewriteItems(func(object map[string]any) {
			delete(object["metadata"].(map[string]any), "uid")
		})))
		expireWatches(hostile, "pods")
		Eventually(rejected("Identity")).WithTimeout(relisted).Should(BeNumerically(">", before))
	})
})

// relisted is how long the syncer may take to list again: client-go waits up to a
// minute before a watch that was cut, as each rule does, and again before the list.
const relisted = 150 * time.Second

// onlyWatches reports whether a request is a watch that does not begin with a list.
func onlyWatches(r *http.Request) bool {
	query := r.URL.Query()
	return query.Get("watch") != "" && query.Get("sendInitialEvents") == ""
}

// expireWatches makes the syncer list again: its watches of a resource are answered
// with 410 Gone until it does. One answer would not do: it may be lost as the
// connections are closed, and then client-go watches on.
func expireWatches(hostile *local.Hostile, resource string) {
	var listed atomic.Bool
	DeferCleanup(hostile.On(func(r *http.Request) bool {
		if !local.Lists(resource)(r) {
			return false
		}
		if !onlyWatches(r) {
			listed.Store(true)
		}
		return !listed.Load()
	}, local.Status(http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)))
}
