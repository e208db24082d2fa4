package routes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	ns, host = "shop", "shop.example.com"
	agnhost  = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	port     = 8080
)

var _ = Describe("An HTTPRoute", Ordered, func() {
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red, blue = newTenant(ctx, tenancyv1alpha1.IsolationShared), newTenant(ctx, tenancyv1alpha1.IsolationDedicated)
		serve(ctx, red, "red")
		serve(ctx, blue, "blue")
	})

	It("leads requests for its host to the pods of its tenant, and keeps the host until it is deleted", func(ctx SpecContext) {
		route := kit.Route("HTTPRoute", ns, "shop", host)
		kit.CreateRoute(ctx, red, route)
		Eventually(request(ctx, host)).WithTimeout(later).Should(Equal(response{http.StatusOK, "red"}))
		Expect(request(ctx, "other.example.com")()).To(HaveField("Status", http.StatusNotFound))

		taken := kit.Route("HTTPRoute", ns, "taken", host)
		above := kit.Route("HTTPRoute", ns, "above", "*.example.com")
		for _, r := range []*unstructured.Unstructured{taken, above} {
			kit.CreateRoute(ctx, blue, r)
			Eventually(kit.Rejections(ctx, blue, r)).Should(ContainElement(ContainSubstring("in use by another Ingress or route")))
		}
		Consistently(request(ctx, host)).Should(Equal(response{http.StatusOK, "red"}))
		Expect(request(ctx, "other.example.com")()).To(HaveField("Status", http.StatusNotFound))

		Expect(red.Client.Delete(ctx, route)).To(Succeed())
		Eventually(request(ctx, host)).WithTimeout(later).Should(Equal(response{http.StatusOK, "blue"}))
		for _, r := range []*unstructured.Unstructured{taken, above} {
			Expect(blue.Client.Delete(ctx, r)).To(Succeed())
		}
		Eventually(request(ctx, host)).WithTimeout(later).Should(HaveField("Status", http.StatusNotFound))
	}, SpecTimeout(2*later))

	It("has the status that the controller writes, in the tenant's own names", func(ctx SpecContext) {
		route := kit.Route("HTTPRoute", ns, "status", "status.example.com")
		kit.CreateRoute(ctx, red, route)
		Eventually(kit.Read(ctx, red.Client, route)).WithTimeout(later).Should(And(
			haveCondition("Accepted", "True"), haveCondition("ResolvedRefs", "True")))
		Expect(kit.Get(ctx, red.Client, route)).To(Succeed())
		Expect(text(route)).NotTo(ContainSubstring(red.Key()))

		kit.Edit(ctx, red.Client, route, func(r *unstructured.Unstructured) {
			rule := map[string]any{"backendRefs": []any{map[string]any{"name": "missing", "port": int64(80)}}}
			Expect(unstructured.SetNestedSlice(r.Object, []any{rule}, "spec", "rules")).To(Succeed())
		})
		Eventually(kit.Read(ctx, red.Client, route)).WithTimeout(later).Should(
			haveCondition("ResolvedRefs", "False", HaveKeyWithValue("message", ContainSubstring("HTTPBackendRef "+ns+"/missing"))))
		Expect(kit.Get(ctx, red.Client, route)).To(Succeed())
		Expect(text(route)).NotTo(ContainSubstring(red.Key()), "the controller's message names the super cluster's namespace")
		Eventually(request(ctx, "status.example.com")).Should(HaveField("Status", http.StatusInternalServerError))
	}, SpecTimeout(2*later))
})

// serve runs a pod of a tenant that answers with its name, and creates the
// Service to which the tenant's routes lead.
func serve(ctx context.Context, t *local.Tenant, name string) {
	GinkgoHelper()
	web := kit.Pod(ns, name, func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web"}
		p.Spec.TerminationGracePeriodSeconds = new(int64(1))
		p.Spec.Containers[0].Image, p.Spec.Containers[0].Args = agnhost, []string{"netexec", fmt.Sprint("--http-port=", port)}
	})
	front := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: web.Labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
	}}
	kit.Create(ctx, t.Client, kit.Namespace(ns), web, front)
	Eventually(kit.Read(ctx, t.Client, web)).WithTimeout(later).Should(beReady)
}

// response is what a client got.
type response struct {
	Status int
	Body   string
}

// request returns a function that asks the Gateway, as a client to which the
// host resolves would, for the name of the pod that answers.
func request(ctx context.Context, host string) func() (response, error) {
	return func() (response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+edge+"/hostname", nil)
		if err != nil {
			return response{}, err
		}
		r.Host = host
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return response{}, err
		}
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		return response{got.StatusCode, string(body)}, err
	}
}

// haveCondition succeeds for a route with a condition of its only parent.
func haveCondition(kind, status string, more ...OmegaMatcher) OmegaMatcher {
	return WithTransform(func(route *unstructured.Unstructured) []any {
		parents, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
		if len(parents) != 1 {
			return nil
		}
		conditions, _, _ := unstructured.NestedSlice(parents[0].(map[string]any), "conditions")
		return conditions
	}, ContainElement(And(append(more, HaveKeyWithValue("type", kind), HaveKeyWithValue("status", status))...)))
}

// text returns all that a tenant reads of an object.
func text(route *unstructured.Unstructured) string {
	GinkgoHelper()
	data, err := json.Marshal(route)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}
