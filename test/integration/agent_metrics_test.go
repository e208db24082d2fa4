package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/controllers/addons/metricsapi"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const metricsRoot = "/apis/metrics.k8s.io/v1beta1"

// Everything is real except the measurements: the tenant's aggregator, the
// agent with the shipped roles, and the super cluster's aggregator.
var _ = Describe("The usage of pods", Ordered, ContinueOnFailure, func() {
	var (
		red, blue *local.Tenant
		agent     *local.Agent
		source    *local.MetricsServer
		node      *corev1.Node
	)

	BeforeAll(func(ctx SpecContext) {
		agent = useAgent(ctx)
		source = local.StartMetricsServer()
		DeferCleanup(source.Stop)
		red, blue = tenant(ctx), tenant(ctx)
		node = bareNode(ctx)
		for i, p := range []struct {
			of          *local.Tenant
			name        string
			cpu, memory string
		}{{red, "web", "10m", "20Mi"}, {red, "db", "5m", "30Mi"}, {blue, "others", "700m", "1Gi"}} {
			pod := kit.Pod(agentNamespace, p.name, onNode(node), func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": p.name} })
			kit.Create(ctx, p.of.Client, pod)
			copied := runs(ctx, p.of, pod)
			if i == 0 { // as a webhook of the super cluster would
				kit.Edit(ctx, super.Client, copied, func(c *corev1.Pod) { c.Labels["injected"] = "yes" })
			}
			source.Measure(copied, p.cpu, p.memory)
		}
		own := kit.Pod(red.Super(agentNamespace), "of-the-super-cluster", onNode(node))
		kit.Create(ctx, super.Client, own)
		source.Measure(own, "3", "3Gi")
		serveMetrics(ctx, source)
		addon, err := metricsapi.Addon(agent.Address, filepath.Join(super.Dir, "vn-agent", "ca.crt"))
		Expect(err).NotTo(HaveOccurred())
		for _, t := range []*local.Tenant{red, blue} {
			keepMetrics(ctx, t)
			objects, err := addon.Objects(nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(addons.Ensure(ctx, dynamic.NewForConfigOrDie(t.Config), objects)).To(Succeed())
			// An apiserver checks the availability of an API every half minute.
			Eventually(asked(ctx, t.Config, "/pods")).WithTimeout(3*kit.Soon).Should(answer(http.StatusOK, Not(BeEmpty())), func() string {
				own := apiService(0)
				return fmt.Sprint(kit.Get(ctx, t.Client, own), own.Object["status"])
			})
		}
	})

	// used returns the reported usage of pods.
	used := func(ctx context.Context, t *local.Tenant, path string) map[string]string {
		GinkgoHelper()
		list := &metricsv1beta1.PodMetricsList{}
		said, err := asked(ctx, t.Config, path)()
		Expect(err).NotTo(HaveOccurred())
		Expect(said.Code).To(Equal(http.StatusOK), said.Body)
		Expect(said.Body).NotTo(ContainSubstring(red.Key()))
		Expect(json.Unmarshal([]byte(said.Body), list)).To(Succeed())
		Expect(list.Kind).To(Equal("PodMetricsList"))
		got := map[string]string{}
		for _, item := range list.Items {
			got[item.Namespace+"/"+item.Name] = item.Containers[0].Usage.Cpu().String()
			Expect(item.Labels).To(Equal(map[string]string{"app": item.Name}), "no label of the super cluster is shown")
		}
		return got
	}

	It("covers the tenant's own pods, under its names", func(ctx SpecContext) {
		Expect(used(ctx, red, "/pods")).To(Equal(map[string]string{"default/web": "10m", "default/db": "5m"}))
		Expect(used(ctx, red, "/namespaces/default/pods")).To(HaveLen(2))
		Expect(used(ctx, red, "/namespaces/default/pods?labelSelector=app%3Ddb")).To(Equal(map[string]string{"default/db": "5m"}))
		Expect(used(ctx, red, "/pods?labelSelector=injected")).To(BeEmpty())
		Expect(used(ctx, blue, "/pods")).To(Equal(map[string]string{"default/others": "700m"}))
		Expect(asked(ctx, red.Config, "/namespaces/default/pods/web")()).To(answer(http.StatusOK, ContainSubstring(`"cpu":"10m"`)))
	}, SpecTimeout(8*kit.Soon)) // includes the setup: each tenant may take half a minute to see the API

	It("covers no pods of other tenants or of the super cluster, whatever the path", func(ctx SpecContext) {
		for _, namespace := range []string{"kube-system", blue.Key(), blue.Super(agentNamespace), red.Super(agentNamespace)} {
			Expect(used(ctx, red, "/namespaces/"+namespace+"/pods")).To(BeEmpty(), namespace)
		}
		for _, pod := range []string{"others", "of-the-super-cluster", "missing"} {
			Expect(asked(ctx, red.Config, "/namespaces/default/pods/"+pod)()).To(answer(http.StatusNotFound, ContainSubstring(pod)))
		}
		shown := pairIn(super.PKIFile(red.Key(), "front-proxy-client.pem"))
		for _, path := range []string{
			"/namespaces/default%2f..%2f" + blue.Super(agentNamespace) + "/pods", "/namespaces/../pods", "/pods/", "/secrets",
		} {
			Expect(ask(ctx, agent, shown, metricsRoot+path)).To(answer(http.StatusNotFound, ContainSubstring("and nothing else")), path)
		}
		Expect(ask(ctx, agent, shown, metricsRoot+"/pods", "X-Remote-User", "admin", "X-Remote-Group", "system:masters")).
			To(answer(http.StatusOK, Not(ContainSubstring("others"))))
	}, SpecTimeout(2*kit.Soon))

	It("of a node is the sum of the tenant's own pods", func(ctx SpecContext) {
		list := &metricsv1beta1.NodeMetricsList{}
		said, err := asked(ctx, red.Config, "/nodes")()
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal([]byte(said.Body), list)).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].Name).To(Equal(node.Name))
		Expect(list.Items[0].Usage.Cpu().String()).To(Equal("15m"))
		Expect(list.Items[0].Usage.Memory().String()).To(Equal("50Mi"))
		Expect(asked(ctx, blue.Config, "/nodes/"+node.Name)()).To(answer(http.StatusOK, ContainSubstring(`"cpu":"700m"`)))
		Expect(asked(ctx, red.Config, "/nodes/another")()).To(answer(http.StatusNotFound, ContainSubstring("another")))
		Expect(asked(ctx, red.Config, "/nodes?labelSelector=a%3Db")()).To(answer(http.StatusBadRequest, ContainSubstring("name the nodes")))
	}, SpecTimeout(2*kit.Soon))

	It("requires a permission in the tenant cluster", func(ctx SpecContext) {
		alice := rest.CopyConfig(red.Config)
		alice.Impersonate.UserName = "alice"
		Expect(asked(ctx, alice, "/pods")()).To(answer(http.StatusForbidden, ContainSubstring("alice")))
		kit.Create(ctx, red.Client, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "alice"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
		})
		Eventually(asked(ctx, alice, "/pods")).Should(answer(http.StatusOK, ContainSubstring("web")))
	}, SpecTimeout(2*kit.Soon))

	It("does not replace the tenant's own metrics-server", func(ctx SpecContext) {
		third := tenant(ctx)
		own := apiService(443)
		kit.Create(ctx, third.Client, own)
		addon, err := metricsapi.Addon(agent.Address, filepath.Join(super.Dir, "vn-agent", "ca.crt"))
		Expect(err).NotTo(HaveOccurred())
		objects, err := addon.Objects(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(addons.Ensure(ctx, dynamic.NewForConfigOrDie(third.Config), objects)).To(Succeed())
		Expect(kit.Get(ctx, third.Client, own)).To(Succeed())
		Expect(own.Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("service", HaveKeyWithValue("name", "metrics-server"))))
	}, SpecTimeout(2*kit.Soon))

	It("is unknown without measurements, and the API stays available, so that namespaces can be deleted", func(ctx SpecContext) {
		source.Stop()
		Eventually(asked(ctx, red.Config, "/pods")).Should(answer(http.StatusServiceUnavailable,
			And(ContainSubstring("the usage of pods and nodes is not known now"), Not(ContainSubstring("127.0.0.1")))))
		discovery, err := kubernetes.NewForConfigOrDie(red.Config).Discovery().ServerResourcesForGroupVersion("metrics.k8s.io/v1beta1")
		Expect(err).NotTo(HaveOccurred())
		Expect(discovery.APIResources).To(ConsistOf(HaveField("Kind", "PodMetrics"), HaveField("Kind", "NodeMetrics")))
	}, SpecTimeout(2*kit.Soon))
})

// keepMetrics reconciles a tenant's API in the spec: the manager here has no
// agent.
func keepMetrics(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	kit.Edit(ctx, t.Client, kit.Namespace(metav1.NamespaceSystem), func(ns *corev1.Namespace) {
		metav1.SetMetaDataAnnotation(&ns.ObjectMeta, names.Metrics, names.Unmanaged)
	})
}

var _ = Describe("The usage of pods when the manager has no agent any more", func() {
	It("is removed as an API, which would be unavailable, unless the tenant has created the API", func(ctx SpecContext) {
		red, blue := tenant(ctx), tenant(ctx)
		agent := useAgent(ctx)
		addon, err := metricsapi.Addon(agent.Address, filepath.Join(super.Dir, "vn-agent", "ca.crt"))
		Expect(err).NotTo(HaveOccurred())
		objects, err := addon.Objects(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(addons.Ensure(ctx, dynamic.NewForConfigOrDie(red.Config), objects)).To(Succeed())
		kit.Create(ctx, blue.Client, apiService(443))

		for _, t := range []*local.Tenant{red, blue} {
			lookAgain(ctx, t)
		}
		for _, obj := range objects {
			kit.ShouldVanish(ctx, red.Client, obj)
		}
		Consistently(kit.Get).WithContext(ctx).WithArguments(blue.Client, apiService(443)).Should(Succeed())
	}, SpecTimeout(4*kit.Soon))
})

var _ = Describe("The usage of pods when the tenant manages the API", func() {
	It("is not touched, and the tenant may delete it", func(ctx SpecContext) {
		red, agent := tenant(ctx), useAgent(ctx)
		keepMetrics(ctx, red)
		addon, err := metricsapi.Addon(agent.Address, filepath.Join(super.Dir, "vn-agent", "ca.crt"))
		Expect(err).NotTo(HaveOccurred())
		objects, err := addon.Objects(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(addons.Ensure(ctx, dynamic.NewForConfigOrDie(red.Config), objects)).To(Succeed())

		lookAgain(ctx, red)
		Consistently(func(g Gomega) {
			for _, obj := range objects {
				g.Expect(kit.Get(ctx, red.Client, obj.DeepCopy())).To(Succeed())
			}
		}).Should(Succeed())
		Expect(red.Client.Delete(ctx, apiService(443))).To(Succeed())
		lookAgain(ctx, red)
		Consistently(kit.Get).WithContext(ctx).WithArguments(red.Client, apiService(443)).Should(MatchError(apierrors.IsNotFound, "not found"))
	}, SpecTimeout(4*kit.Soon))
})

// lookAgain makes the manager reconcile the addons of a tenant, as at its
// start.
func lookAgain(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	kit.Edit(ctx, super.Client, t.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
		metav1.SetMetaDataLabel(&vc.ObjectMeta, "looked-at", vc.ResourceVersion)
	})
}

// serveMetrics registers a source of the resource metrics API with the super
// cluster's aggregator.
func serveMetrics(ctx context.Context, source *local.MetricsServer) {
	GinkgoHelper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "metrics-server"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: source.Address().IP.String()},
	}
	for _, obj := range []client.Object{service, apiService(source.Address().Port)} {
		kit.Create(ctx, super.Client, obj)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, obj)).To(Succeed()) })
	}
}

// apiService registers metrics-server for the resource metrics API.
func apiService(port int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"spec": map[string]any{
			"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"name": "metrics-server", "namespace": metav1.NamespaceSystem, "port": int64(port)},
		},
	}}
}

// asked sends an apiserver a request for a path of the API.
func asked(ctx context.Context, config *rest.Config, path string) func() (local.Reply, error) {
	return func() (local.Reply, error) {
		var code int
		result := kubernetes.NewForConfigOrDie(config).RESTClient().Get().RequestURI(metricsRoot + path).Do(ctx).StatusCode(&code)
		body, err := result.Raw()
		if code == 0 {
			return local.Reply{}, err
		}
		return local.Reply{Code: code, Body: string(body)}, nil
	}
}
