package hosted_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// runFeed runs a feed of the tenants' etcd until the test has ended.
func runFeed(tb testing.TB) *feed.Feed {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	source, err := feed.New(ctx, feed.Embedded(hosted.TenantsKV(shared)))
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return source
}

// viewsOf returns the views of a control plane, which must not fail.
func viewsOf(tb testing.TB, tenant string) *views.Views {
	tb.Helper()
	fail := func(tenant string, err error) { tb.Errorf("%s: %v", tenant, err) }
	v := views.New(context.Background(), runFeed(tb), tenant, views.Options{OnFailure: fail})
	tb.Cleanup(func() {
		if err := v.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return v
}

// controllersWithout are those of a tenant except the ones that a test runs.
func controllersWithout(names ...string) []hosted.Controller {
	return slices.DeleteFunc(hosted.TenantControllers(), func(c hosted.Controller) bool { return slices.Contains(names, c.Name) })
}

// TestControllersOnViews: unmodified controllers work on views, for built-in
// and custom resources.
func TestControllersOnViews(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{
		Name:        "on-views",
		Controllers: controllersWithout("deployment-controller", "replicaset-controller", "garbage-collector-controller"),
	})
	client := clientOf(t, plane.RESTConfig())
	definitions, err := apiextensions.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), widgetDefinition(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	widget := createWidget(t, plane, "owner", nil)

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	factory := viewsOf(t, plane.Name()).NewFactory()
	runWorkloads(ctx, g, &running, factory, client)
	runCollector(ctx, g, &running, factory, plane)

	createDeployment(t, client, metav1.OwnerReference{
		APIVersion: "example.com/v1", Kind: "Widget", Name: "owner", UID: widget.GetUID(),
	})
	pods := func() int {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return len(list.Items)
	}
	g.Eventually(pods, soon, tick).Should(Equal(3))
	g.Expect(client.CoreV1().Pods("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	g.Eventually(func() (int32, error) {
		found, err := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		return found.Status.Replicas, err
	}, soon, tick).Should(BeEquivalentTo(3))
	g.Eventually(pods, soon, tick).Should(Equal(3), "deleted pods are replaced")

	resources := dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(widgets).Namespace("default")
	g.Expect(resources.Delete(t.Context(), "owner", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error {
		_, err := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		return err
	}, later, tick).Should(Satisfy(apierrors.IsNotFound), "the deployment goes with its owner")
	g.Eventually(pods, soon, tick).Should(BeZero())
}

func runWorkloads(ctx context.Context, g Gomega, running *sync.WaitGroup, factory informers.SharedInformerFactory, client kubernetes.Interface) {
	apps, core := factory.Apps().V1(), factory.Core().V1()
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	g.Expect(err).NotTo(HaveOccurred())
	sets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas)
	factory.Start(ctx.Done())
	running.Go(func() { deployments.Run(ctx, 2) })
	running.Go(func() { sets.Run(ctx, 2) })
}

func runCollector(ctx context.Context, g Gomega, running *sync.WaitGroup, factory *views.Factory, plane *hosted.ControlPlane) {
	client, err := kubernetes.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := metadata.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery.NewMemCacheClient(client.Discovery()))
	started := make(chan struct{})
	close(started)
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, objects, mapper, garbagecollector.DefaultIgnoredResources(),
		factory.MetadataOnly(), started)
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, client, objects, mapper, graph)
	g.Expect(err).NotTo(HaveOccurred())
	running.Go(func() { gc.Sync(ctx, client.Discovery(), time.Second) })
	running.Go(func() { gc.Run(ctx, 2, time.Second) })
}

func createDeployment(t *testing.T, client kubernetes.Interface, owner metav1.OwnerReference) {
	t.Helper()
	replicas, labels := int32(3), map[string]string{"app": "web"}
	_, err := client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels),
		},
	}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func createWidget(t *testing.T, plane *hosted.ControlPlane, name string, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	client, err := dynamic.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	widget.SetAPIVersion("example.com/v1")
	widget.SetKind("Widget")
	widget.SetName(name)
	var created *unstructured.Unstructured
	g.Eventually(func() error {
		created, err = client.Resource(widgets).Namespace("default").Create(t.Context(), widget, metav1.CreateOptions{})
		return err
	}, soon, tick).Should(Succeed())
	return created
}

// TestViewsOfAllResources: for each resource that an apiserver serves, views
// have exactly the objects that it returns. So they know where it stores them,
// and how.
func TestViewsOfAllResources(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "all-views"})
	definitions, err := apiextensions.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), widgetDefinition(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	createWidget(t, plane, "one", nil)
	client := clientOf(t, plane.RESTConfig())
	objects, err := metadata.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	served, err := client.Discovery().ServerPreferredResources()
	g.Expect(err).NotTo(HaveOccurred())
	factory := viewsOf(t, plane.Name()).NewFactory()
	found := 0
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for _, each := range list.APIResources {
			if !slices.Contains(each.Verbs, "list") || strings.Contains(each.Name, "/") {
				continue
			}
			resource := version.WithResource(each.Name)
			want := func() []string { return listed(t, objects, resource) }
			names := factory.Metadata().ForResource(resource).Informer().GetStore().ListKeys
			g.Eventually(func() bool { return equal(names(), want()) }, soon, tick).Should(BeTrue(), "metadata of %s", resource)
			found += len(names())
			if typed, err := factory.ForResource(resource); err == nil {
				g.Eventually(func() bool { return equal(typed.Informer().GetStore().ListKeys(), want()) }, soon, tick).
					Should(BeTrue(), "objects of %s", resource)
			}
		}
	}
	g.Expect(found).To(BeNumerically(">", 100))
}

func listed(t *testing.T, client metadata.Interface, resource schema.GroupVersionResource) []string {
	t.Helper()
	list, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), resource.String())
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, cache.MetaObjectToName(&list.Items[i]).String())
	}
	return names
}

func equal(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
