package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The DNS that tenants share", Ordered, func() {
	const client, name = "127.0.9.1", "web.default.svc.cluster.local."
	var shared *kit.SharedDNS

	BeforeAll(func(ctx SpecContext) { shared = kit.StartSharedDNS(ctx, super, "127.0.9.53") })

	It("answers a tenant's pods with the tenant's names", func(ctx SpecContext) {
		t := tenant(ctx)
		port := shared.Join(ctx, t)
		web := service(metav1.NamespaceDefault, "web")
		kit.Create(ctx, t.Client, web)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, web))
		shared.PodAt(ctx, t, client)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(client, port, name).Should(HaveExactElements(web.Spec.ClusterIP))
	})

	It("answers in the domain of the tenant's cluster", func(ctx SpecContext) {
		const client = "127.0.9.2"
		t := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ClusterDomain = "red.example" })
		port := shared.Join(ctx, t)
		shared.PodAt(ctx, t, client)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(client, port, "kube-dns.kube-system.svc.red.example.").ShouldNot(BeEmpty())
	})

	It("is left by a tenant that serves its own DNS, and joined again", func(ctx SpecContext) {
		t := tenant(ctx)
		shared.Join(ctx, t)
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: names.DNSService}}
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: t.Super(metav1.NamespaceSystem), Name: names.SharedDNSSlice}}
		kit.Edit(ctx, t.Client, svc, func(s *corev1.Service) { s.Spec.Selector = map[string]string{"k8s-app": "kube-dns"} })
		kit.ShouldVanish(ctx, super.Client, slice)
		kit.Edit(ctx, t.Client, svc, func(s *corev1.Service) { s.Spec.Selector = map[string]string{names.DNS: names.Shared} })
		kit.ShouldExist(ctx, super.Client, slice)
		Expect(super.Client.Delete(ctx, slice)).To(Succeed())
		kit.ShouldExist(ctx, super.Client, slice)
	})
})
