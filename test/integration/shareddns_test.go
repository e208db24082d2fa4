package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The DNS that tenants share", Ordered, func() {
	var shared *kit.SharedDNS

	BeforeAll(func(ctx SpecContext) { shared = kit.StartSharedDNS(ctx, "127.0.9.53") })

	It("answers a tenant's pods with the tenant's names", func(ctx SpecContext) {
		const client, name = "127.0.9.1", "web.default.svc.cluster.local."
		t, port := shared.Tenant(ctx)
		web := service(metav1.NamespaceDefault, "web")
		kit.Create(ctx, t.Client, web)
		kit.ShouldExist(ctx, shared.Super.Client, kit.SuperOf(t, web))
		shared.PodAt(ctx, t, client)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(client, port, name).Should(HaveExactElements(web.Spec.ClusterIP))
	})

	It("answers with the names of Services of type ExternalName, which no other component resolves", func(ctx SpecContext) {
		const client, name = "127.0.9.3", "elsewhere.default.svc.cluster.local."
		t, port := shared.Tenant(ctx)
		web, elsewhere := service(metav1.NamespaceDefault, "web"), service(metav1.NamespaceDefault, "elsewhere")
		elsewhere.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.default.svc.cluster.local"}
		kit.Create(ctx, t.Client, web, elsewhere)
		shared.PodAt(ctx, t, client)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(client, port, name).Should(HaveExactElements(web.Spec.ClusterIP))

		copied := kit.SuperOf(t, elsewhere)
		kit.ShouldExist(ctx, shared.Super.Client, copied)
		Expect(copied.Spec).To(And(HaveField("Type", corev1.ServiceTypeClusterIP), HaveField("ExternalName", ""), HaveField("ClusterIP", "None")))
		Consistently(kit.Read(ctx, shared.Super.Client, copied)).Should(HaveField("ResourceVersion", copied.ResourceVersion))
		kit.Edit(ctx, t.Client, elsewhere, func(s *corev1.Service) { s.Spec.ExternalName = "kube-dns.kube-system.svc.cluster.local" })
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(client, port, name).ShouldNot(ContainElement(web.Spec.ClusterIP))
		kit.Edit(ctx, t.Client, elsewhere, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.Ports = corev1.ServiceTypeClusterIP, "", web.Spec.Ports
		})
		Eventually(kit.Read(ctx, shared.Super.Client, copied)).Should(And(
			HaveField("Annotations", Not(HaveKey(names.ExternalName))), HaveField("Spec.ClusterIP", elsewhere.Spec.ClusterIP)))
	})

	It("answers in the domain of the tenant's cluster", func(ctx SpecContext) {
		const client, name = "127.0.9.2", "kube-dns.kube-system.svc.red.example."
		t, port := shared.Tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ClusterDomain = "red.example" })
		shared.PodAt(ctx, t, client)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(client, port, name).ShouldNot(BeEmpty())
	})

	It("is left by a tenant that serves its own DNS, and joined again", func(ctx SpecContext) {
		t, _ := shared.Tenant(ctx)
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: names.DNSService}}
		slice := shared.SliceOf(t)
		var was map[string]string
		kit.Edit(ctx, t.Client, svc, func(s *corev1.Service) {
			was, s.Spec.Selector = s.Spec.Selector, map[string]string{"k8s-app": "kube-dns"}
		})
		kit.ShouldVanish(ctx, shared.Super.Client, slice)
		kit.Edit(ctx, t.Client, svc, func(s *corev1.Service) { s.Spec.Selector = was })
		kit.ShouldExist(ctx, shared.Super.Client, slice)
		Expect(shared.Super.Client.Delete(ctx, slice)).To(Succeed())
		kit.ShouldExist(ctx, shared.Super.Client, slice)
	})
})
