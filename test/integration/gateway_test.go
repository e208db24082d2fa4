package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// through returns a tenant whose admin reaches it through the gateway.
func through(ctx context.Context, t *local.Tenant) *local.Tenant {
	GinkgoHelper()
	return kit.Through(ctx, super, t)
}

// userOf issues a certificate of a tenant's own CA.
func userOf(t *local.Tenant, name string, groups ...string) tls.Certificate {
	GinkgoHelper()
	return kit.UserOf(super, t, name, time.Hour, groups...)
}

// tokenOf returns a token of the default service account of a tenant.
func tokenOf(ctx context.Context, t *local.Tenant) string {
	GinkgoHelper()
	accounts := clientset(t).CoreV1().ServiceAccounts("default")
	request := &authenticationv1.TokenRequest{}
	Eventually(func() (err error) { // when a controller has created the service account
		request, err = accounts.CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	return request.Status.Token
}

var _ = Describe("The gateway", Ordered, ContinueOnFailure, func() {
	const ns = "front"
	var (
		red, blue, viaRed *local.Tenant
		door              kit.Door
	)

	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }

	BeforeAll(func(ctx SpecContext) {
		red, blue = tenant(ctx), tenant(ctx)
		viaRed = through(ctx, red)
		through(ctx, blue)
		door = kit.DoorOf(viaRed.Config)
		for _, t := range []*local.Tenant{red, blue} {
			kit.Create(ctx, t.Client, kit.Namespace(ns), configMap(ns, "web", map[string]string{"of": t.Key()}))
		}
	})

	It("serves an unmodified client by a kubeconfig without a TLS server name", func(ctx SpecContext) {
		found := configMap(ns, "web", nil)
		Expect(kit.Get(ctx, viaRed.Client, found)).To(Succeed())
		Expect(found.Data).To(HaveKeyWithValue("of", red.Key()))
		applied := corev1ac.ConfigMap("applied", ns).WithData(map[string]string{"a": "b"})
		Expect(viaRed.Client.Apply(ctx, applied, client.FieldOwner("kubectl"))).To(Succeed())
		Expect(kit.Get(ctx, red.Client, configMap(ns, "applied", nil))).To(Succeed())
		Expect(viaRed.Client.Delete(ctx, configMap(ns, "applied", nil))).To(Succeed())
		documents := must(clientset(viaRed).Discovery().OpenAPIV3().Paths())
		Expect(must(documents["apis/apps/v1"].Schema("application/json"))).To(ContainSubstring("Deployment")) // kubectl explain
	})

	It("serves bodies in protobuf and CBOR", func(ctx SpecContext) {
		for _, contentType := range []string{"application/vnd.kubernetes.protobuf", "application/cbor"} {
			config := rest.CopyConfig(viaRed.Config)
			config.ContentType, config.AcceptContentTypes = contentType, contentType+",application/json"
			maps := must(kubernetes.NewForConfig(config)).CoreV1().ConfigMaps(ns)
			made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "body-"}}, metav1.CreateOptions{})
			if contentType == "application/cbor" && apierrors.IsUnsupportedMediaType(err) {
				continue // the apiserver's own answer
			}
			Expect(err).NotTo(HaveOccurred(), contentType)
			Expect(must(maps.Get(ctx, made.Name, metav1.GetOptions{})).UID).To(Equal(made.UID))
		}
	})

	It("serves informers", func(ctx SpecContext) {
		ending, end := context.WithCancel(ctx)
		defer end()
		factory := informers.NewSharedInformerFactoryWithOptions(clientset(viaRed), 0, informers.WithNamespace(ns))
		lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(ns)
		factory.Start(ending.Done())
		factory.WaitForCacheSync(ending.Done())
		kit.Create(ctx, red.Client, configMap(ns, "watched", nil))
		Eventually(func() error { _, err := lister.Get("watched"); return err }).WithTimeout(kit.Soon).Should(Succeed())
	})

	It("lets an admin impersonate, as the tenant's RBAC allows", func(ctx SpecContext) {
		config := rest.CopyConfig(viaRed.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"developers"}}
		review := must(must(kubernetes.NewForConfig(config)).AuthenticationV1().SelfSubjectReviews().Create(
			ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
		Expect(review.Status.UserInfo.Username).To(Equal("jane"))
		Expect(review.Status.UserInfo.Groups).To(ContainElement("developers"))
		jane := userOf(red, "jane")
		Expect(door.Ask(ctx, &jane, "/tenants/"+red.Key()+"/api/v1/namespaces", "Impersonate-User", "admin", "Impersonate-Group", "system:masters").Code).
			To(Equal(http.StatusForbidden))
	})

	It("finds the tenant by each form, and by the credentials without one", func(ctx SpecContext) {
		admin := userOf(red, "root", "system:masters")
		const object = "/namespaces/" + ns + "/configmaps/web"
		token := tokenOf(ctx, red)
		kit.Create(ctx, red.Client, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "default-reads"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "default"}},
		})
		Eventually(func() int {
			return door.Ask(ctx, nil, "/api/v1"+object, bearer(token)...).Code
		}).WithTimeout(kit.Soon).Should(Equal(http.StatusOK))
		for form, path := range map[string]string{
			"prefix": "/tenants/" + red.Key() + "/api/v1" + object, "full path": "/api/v1/tenants/" + red.Key() + object,
			"query": "/api/v1" + object + "?project=" + red.Key(), "identity": "/api/v1" + object,
		} {
			for _, reply := range []local.Reply{door.Ask(ctx, &admin, path), door.Ask(ctx, nil, path, bearer(token)...)} {
				Expect(reply.Code).To(Equal(http.StatusOK), form)
				Expect(reply.Body).To(ContainSubstring(red.Key()), form)
			}
		}
		for _, header := range []string{"X-Kubernetes-Project", "X_KUBERNETES_PROJECT"} {
			reply := door.Ask(ctx, &admin, "/api/v1"+object, header, red.Key())
			Expect(reply.Code).To(Equal(http.StatusOK), header)
		}
		Expect(door.Ask(ctx, &admin, "/apis/rbac.authorization.k8s.io/v1/tenants/"+red.Key()+"/clusterroles/view").Code).To(Equal(http.StatusOK))
	})

	It("bounds bodies, and serves HTTP/1.0", func(ctx SpecContext) {
		huge := configMap(ns, "huge", map[string]string{"a": strings.Repeat("a", 9<<20)})
		err := viaRed.Client.Create(ctx, huge)
		Expect(apierrors.IsRequestEntityTooLargeError(err)).To(BeTrue(), "%v", err)
		conn := must(tls.Dial("tcp", door.Address, door.As(userOf(red, "root", "system:masters"))))
		defer conn.Close()
		fmt.Fprintf(conn, "GET /api/v1/namespaces/%s/configmaps/web HTTP/1.0\r\n\r\n", ns)
		response := must(http.ReadResponse(bufio.NewReader(conn), nil))
		defer response.Body.Close()
		Expect(response.StatusCode).To(Equal(http.StatusOK))
		Expect(string(must(io.ReadAll(response.Body)))).To(ContainSubstring(red.Key()))
	})

	It("serves a tenant's own resource that is called tenants", func(ctx SpecContext) {
		d := definition("tenants", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Scope, d.Spec.Names.Kind = apiextensionsv1.ClusterScoped, "Tenant"
			d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		})
		kit.Create(ctx, red.Client, d)
		one := custom("tenants", "", blue.Key(), "red")
		one.SetKind("Tenant")
		admin := userOf(red, "root", masters)
		short := rest.CopyConfig(viaRed.Config)
		short.Host = "https://" + door.Address
		for name, c := range map[string]client.Client{"by the prefix": viaRed.Client, "by the certificate": must(local.NewClient(short))} {
			made := one.DeepCopy()
			Eventually(func() error { return c.Create(ctx, made) }).WithTimeout(kit.Soon).Should(Succeed(), name)
			Expect(unstructured.SetNestedField(made.Object, "done", "status", "phase")).To(Succeed())
			Expect(c.Status().Update(ctx, made)).To(Succeed(), name)
			Expect(c.Get(ctx, client.ObjectKeyFromObject(made), made)).To(Succeed(), name)
			Expect(made.Object).To(HaveKeyWithValue("status", HaveKeyWithValue("phase", "done")), name)
			full := door.Ask(ctx, &admin, "/apis/"+platform+"/v1/tenants/"+red.Key()+"/tenants/"+blue.Key())
			Expect(full.Code).To(Equal(http.StatusOK))
			Expect(full.Body).To(ContainSubstring(string(made.GetUID())))
			Expect(c.Delete(ctx, made)).To(Succeed(), name)
		}
	})

	It("passes TLS through to the apiserver that the server name names", func(ctx SpecContext) {
		config := rest.CopyConfig(red.Config)
		config.Host = "https://" + door.Address
		Expect(config.ServerName).NotTo(BeEmpty())
		direct := must(local.NewClient(config))
		found := configMap(ns, "web", nil)
		Expect(kit.Get(ctx, direct, found)).To(Succeed())
		Expect(found.Data).To(HaveKeyWithValue("of", red.Key()))
	})

	It("answers for a tenant that is paused, and no more for one that is deleted", func(ctx SpecContext) {
		green := tenant(ctx)
		via := through(ctx, green)
		changes := must(via.Client.Watch(ctx, &corev1.ConfigMapList{}))
		changeVC(ctx, green, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Paused = true })
		Eventually(func() error { return via.Client.List(ctx, &corev1.NamespaceList{}) }).WithTimeout(2 * kit.Soon).
			Should(Satisfy(apierrors.IsServiceUnavailable))
		changeVC(ctx, green, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Paused = false })
		Eventually(func() error { return via.Client.List(ctx, &corev1.NamespaceList{}) }).WithTimeout(2 * kit.Soon).Should(Succeed())
		admin := userOf(green, "root", "system:masters")
		removeTenant(ctx, green.VC)
		Eventually(changes.ResultChan()).Should(BeClosed())
		Eventually(func() int { return door.Ask(ctx, &admin, "/tenants/"+green.Key()+"/api").Code }).Should(Equal(http.StatusUnauthorized))
	})
})

var _ = Describe("Through the gateway", Ordered, func() {
	It("exec, logs and port-forward work, in each protocol", func(ctx SpecContext) {
		useAgent(ctx)
		kubelet := local.StartKubelet()
		DeferCleanup(kubelet.Stop)
		red := tenant(ctx)
		via := through(ctx, red)
		web := kit.Pod(agentNamespace, "web", onNode(nodeOf(ctx, kubelet)))
		kit.Create(ctx, red.Client, web)
		runs(ctx, red, web)
		kubelet.Print("first")
		for _, each := range protocols() {
			got := run(ctx, via, web.Name, each.executor, "", "echo", "said")
			Expect(got.failure).NotTo(HaveOccurred(), each.name)
			Expect(got.out).To(ContainSubstring("said"), each.name)
		}
		Expect(logs(ctx, via, web.Name, &corev1.PodLogOptions{})).To(ContainSubstring("first"))
		address, end := forward(via, web.Name, 80)
		defer end()
		conn := must((&net.Dialer{}).DialContext(ctx, "tcp", address))
		defer conn.Close()
		must(conn.Write([]byte("hello")))
		buffer := make([]byte, 64)
		var received string
		for !strings.Contains(received, "hello") {
			received += string(buffer[:must(conn.Read(buffer))])
		}
	}, SpecTimeout(6*kit.Soon))

	It("a request wakes a control plane that sleeps, by certificate and by token", func(ctx SpecContext) {
		red := tenant(ctx, sleeping)
		via := through(ctx, red)
		token := tokenOf(ctx, red)
		// wakes sends a request that has to be answered. The first one may be answered
		// before the control plane has stopped.
		wakes := func(request func()) {
			GinkgoHelper()
			shouldSleep(ctx, red)
			Eventually(func() (*tenancyv1alpha1.VirtualCluster, error) {
				request()
				return kit.Read(ctx, super.Client, red.VC)()
			}).WithTimeout(2 * kit.Soon).WithPolling(time.Second).Should(
				kit.HaveCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionTrue, tenancyv1alpha1.ReasonConnection))
			shouldWake(ctx, red, tenancyv1alpha1.ReasonConnection)
		}
		wakes(func() { Expect(via.Client.List(ctx, &corev1.NamespaceList{})).To(Succeed()) })
		config := rest.AnonymousClientConfig(via.Config)
		config.BearerToken = token
		stranger := must(kubernetes.NewForConfig(config))
		wakes(func() {
			_, err := stranger.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		})
	}, SpecTimeout(kit.Longest))
})
