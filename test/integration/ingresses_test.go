package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// offerPublicly creates a class in the super cluster for all tenants until the
// specs end.
func offerPublicly(ctx context.Context, class client.Object) {
	GinkgoHelper()
	publicClass(class)
	offerClass(ctx, class)
}

func ingressClass(name string) *networkingv1.IngressClass {
	return &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/" + name},
	}
}

var _ = Describe("An Ingress", Ordered, func() {
	const ns = "ingresses"
	var (
		red  *local.Tenant
		cert = secret(ns, "cert", nil)
	)
	ingress := func(name, class string, change ...func(*networkingv1.Ingress)) *networkingv1.Ingress {
		i := &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
			}}},
		}
		if class != "" {
			i.Spec.IngressClassName = new(class)
		}
		for _, f := range change {
			f(i)
		}
		return i
	}

	BeforeAll(func(ctx SpecContext) {
		offerPublicly(ctx, ingressClass("net-public"))
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), cert)
		kit.ShouldExist(ctx, red.Client, ingressClass("net-public"))
	})

	It("is synced down with its certificates, updated, and corrected", func(ctx SpecContext) {
		web := ingress("web", "net-public", func(i *networkingv1.Ingress) {
			i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"example.com"}, SecretName: "cert"}}
		})
		kit.Create(ctx, red.Client, web)
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, web))
		Eventually(down).Should(HaveField("Spec", web.Spec))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, cert))

		kit.Edit(ctx, red.Client, web, func(i *networkingv1.Ingress) {
			i.Spec.DefaultBackend.Service.Port.Number = 81
			i.Spec.TLS = nil
		})
		Eventually(down).Should(HaveField("Spec", web.Spec))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, cert))
		kit.Edit(ctx, super.Client, kit.SuperOf(red, web), func(i *networkingv1.Ingress) { i.Spec.DefaultBackend.Service.Name = "stolen" })
		Eventually(down).Should(HaveField("Spec", web.Spec))
		Expect(super.Client.Delete(ctx, kit.SuperOf(red, web))).To(Succeed())
		Eventually(down).Should(HaveField("Spec", web.Spec))
	})

	It("has its addresses synced up", func(ctx SpecContext) {
		down := kit.SuperOf(red, ingress("web", ""))
		kit.EditStatus(ctx, super.Client, down, func(i *networkingv1.Ingress) {
			i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
		})
		Eventually(kit.Read(ctx, red.Client, ingress("web", ""))).
			Should(HaveField("Status.LoadBalancer.Ingress", ConsistOf(HaveField("IP", "192.0.2.1"))))
	})

	It("is deleted", func(ctx SpecContext) {
		Expect(red.Client.Delete(ctx, ingress("web", ""))).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, ingress("web", "")))
	})

	It("of a class that is not offered is rejected, until it names another, or the class is offered", func(ctx SpecContext) {
		hidden := ingressClass("net-hidden")
		offerClass(ctx, hidden)
		one, other, old := ingress("one", "net-hidden"), ingress("other", "net-hidden"), ingress("old", "", func(i *networkingv1.Ingress) {
			i.Annotations = map[string]string{"kubernetes.io/ingress.class": "net-hidden"}
		})
		kit.Create(ctx, red.Client, one, other, old)
		for _, i := range []*networkingv1.Ingress{one, other, old} {
			Eventually(kit.Rejections(ctx, red, i)).Should(ContainElement(ContainSubstring(`"net-hidden"`)))
			Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, i))).NotTo(Succeed())
		}

		kit.Edit(ctx, red.Client, one, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = new("net-public") })
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, one))
		kit.Edit(ctx, super.Client, hidden, func(c *networkingv1.IngressClass) { publicClass(c) })
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, other))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, old))
	})

	It("without a class has no copy, unless the tenant has a default class", func(ctx SpecContext) {
		standard := ingressClass("net-default")
		standard.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		offerClass(ctx, standard)
		none, chosen := ingress("none", ""), ingress("chosen", "")
		kit.Create(ctx, red.Client, none)
		Eventually(kit.Rejections(ctx, red, none)).Should(ContainElement(And(
			ContainSubstring(`spec.ingressClassName is "", which names no class`), ContainSubstring("kubectl get ingressclasses"))))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, none))

		kit.Edit(ctx, super.Client, standard, func(c *networkingv1.IngressClass) { c.Labels = map[string]string{names.Public: "true"} })
		kit.ShouldExist(ctx, red.Client, ingressClass("net-default"))
		// The tenant's own apiserver sets the class, as soon as it knows the
		// default.
		Eventually(func(ctx context.Context) (*string, error) {
			tried := chosen.DeepCopy()
			err := red.Client.Create(ctx, tried, client.DryRunAll)
			return tried.Spec.IngressClassName, err
		}).WithContext(ctx).Should(HaveValue(Equal("net-default")))
		kit.Create(ctx, red.Client, chosen)
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, chosen))
		Eventually(down).Should(HaveField("Spec.IngressClassName", new("net-default")))
		kit.Edit(ctx, red.Client, chosen, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = new("net-public") })
		Eventually(down).Should(HaveField("Spec.IngressClassName", new("net-public")))
		kit.Edit(ctx, red.Client, none, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = new("net-public") })
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, none))
		Expect(super.Client.Delete(ctx, standard)).To(Succeed())
	})
})
