package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The DNS that tenants share", Ordered, func() {
	var shared *kit.SharedDNS

	BeforeAll(func(ctx SpecContext) { shared = kit.StartSharedDNS(ctx, "127.0.9.53") })

	It("answers a tenant's pods with the tenant's names", func(ctx SpecContext) {
		const from, name = "127.0.9.1", "web.default.svc.cluster.local."
		t, port := shared.Tenant(ctx)
		web := service(metav1.NamespaceDefault, "web")
		kit.Create(ctx, t.Client, web)
		kit.ShouldExist(ctx, shared.Super.Client, kit.SuperOf(t, web))
		shared.PodAt(ctx, t, from)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(from, port, name).Should(HaveExactElements(web.Spec.ClusterIP))
	})

	It("answers with the names of Services of type ExternalName, which no other component resolves", func(ctx SpecContext) {
		const from, name = "127.0.9.3", "elsewhere.default.svc.cluster.local."
		t, port := shared.Tenant(ctx)
		web, elsewhere := service(metav1.NamespaceDefault, "web"), service(metav1.NamespaceDefault, "elsewhere")
		elsewhere.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web.default.svc.cluster.local"}
		kit.Create(ctx, t.Client, web, elsewhere)
		shared.PodAt(ctx, t, from)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(from, port, name).Should(HaveExactElements(web.Spec.ClusterIP))

		copied := kit.SuperOf(t, elsewhere)
		kit.ShouldExist(ctx, shared.Super.Client, copied)
		Expect(copied.Spec).To(And(HaveField("Type", corev1.ServiceTypeClusterIP), HaveField("ExternalName", ""), HaveField("ClusterIP", "None")))
		Consistently(kit.Read(ctx, shared.Super.Client, copied)).Should(HaveField("ResourceVersion", copied.ResourceVersion))
		kit.Edit(ctx, t.Client, elsewhere, func(s *corev1.Service) { s.Spec.ExternalName = "kube-dns.kube-system.svc.cluster.local" })
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(from, port, name).ShouldNot(ContainElement(web.Spec.ClusterIP))
		kit.Edit(ctx, t.Client, elsewhere, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.Ports = corev1.ServiceTypeClusterIP, "", web.Spec.Ports
		})
		Eventually(kit.Read(ctx, shared.Super.Client, copied)).Should(And(
			HaveField("Annotations", Not(HaveKey(names.ExternalName))), HaveField("Spec.ClusterIP", elsewhere.Spec.ClusterIP)))
	})

	It("answers in the domain of the tenant's cluster", func(ctx SpecContext) {
		const from, name = "127.0.9.2", "kube-dns.kube-system.svc.red.example."
		t, port := shared.Tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ClusterDomain = "red.example" })
		shared.PodAt(ctx, t, from)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(from, port, name).ShouldNot(BeEmpty())
	})

	It("answers the pods of a converted tenant, which ask it and search the tenant's names", func(ctx SpecContext) {
		const from, name = "127.0.9.4", "web.default.svc.cluster.local."
		t, port := shared.Tenant(ctx, converted)
		web, own := service(metav1.NamespaceDefault, "web"), service(metav1.NamespaceSystem, names.DNSService)
		kit.Create(ctx, t.Client, web)
		Expect(kit.Get(ctx, t.Client, own)).To(Succeed())
		kit.ShouldExist(ctx, t.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
		shared.PodAt(ctx, t, from)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(from, port, name).Should(HaveExactElements(web.Spec.ClusterIP))
		pod := kit.Pod(metav1.NamespaceDefault, "client")
		Expect(kit.Get(ctx, t.Client, pod)).To(Succeed())
		Expect(pod.Spec.DNSPolicy).To(Equal(corev1.DNSNone))
		Expect(pod.Spec.DNSConfig.Nameservers).To(Equal([]string{own.Spec.ClusterIP}))
		Expect(pod.Spec.DNSConfig.Searches).To(Equal([]string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"}))
		var slices discoveryv1.EndpointSliceList
		Expect(t.Client.List(ctx, &slices, client.InNamespace(metav1.NamespaceSystem))).To(Succeed())
		Expect(slices.Items).To(BeEmpty(), "the platform's is not shown")

		chosen := kit.Pod(metav1.NamespaceDefault, "chosen", func(p *corev1.Pod) {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{
				Nameservers: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, Searches: []string{"example.com"},
				Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "edns0"}},
			}
		})
		outside := kit.Pod(metav1.NamespaceDefault, "outside", func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSDefault })
		kit.Create(ctx, t.Client, chosen, outside)
		Expect(chosen.Spec.DNSConfig.Nameservers).To(Equal([]string{own.Spec.ClusterIP, "192.0.2.1", "192.0.2.2"}))
		Expect(chosen.Spec.DNSConfig.Searches).To(HaveLen(4))
		Expect(chosen.Spec.DNSConfig.Options).To(Equal([]corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "edns0"}}))
		Expect(outside.Spec.DNSPolicy).To(Equal(corev1.DNSDefault))
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

var _ = Describe("The DNS that tenants with networks share", Ordered, func() {
	var shared *kit.SharedDNS

	BeforeAll(func(ctx SpecContext) { shared = kit.StartSharedDNS(ctx, "127.0.10.53", "--networks") })

	It("answers at a Service of each network, where the plain names lead to the network's own", func(ctx SpecContext) {
		const from, elsewhere = "127.0.10.1", "127.0.10.2"
		t, port := shared.Tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24"}}
		})
		endpointsOfAPI(ctx, t)
		n := network("lab", networkv1.TypeFlat, withRanges(partOf(t, 64, 27)))
		createNetwork(ctx, t, n)
		Eventually(kit.Read(ctx, t.Client, n)).Should(haveServices(networkv1.ReasonServicesCreated, "kube-system/kube-dns-lab"))
		dns, api := service(metav1.NamespaceSystem, "kube-dns-lab"), service(metav1.NamespaceDefault, "kubernetes-lab")
		for _, s := range []*corev1.Service{dns, api} {
			Expect(kit.Get(ctx, t.Client, s)).To(Succeed())
			Expect(s).To(inRange(n.Spec.Service.CIDRs[0]))
			Eventually(kit.Read(ctx, shared.Super.Client, kit.SuperOf(t, s))).Should(HaveField("Spec.ClusterIP", s.Spec.ClusterIP))
		}
		plain := shared.SliceOf(t)
		Expect(kit.Get(ctx, shared.Super.Client, plain)).To(Succeed())
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: plain.Namespace, Name: names.SharedDNSSliceOf(dns.Name)}}
		Eventually(kit.Read(ctx, shared.Super.Client, slice)).Should(And(
			HaveField("Labels", HaveKeyWithValue(discoveryv1.LabelServiceName, dns.Name)), leadTo(plain)))

		shared.PodAt(ctx, t, from, func(p *corev1.Pod) { p.Name = "of-lab" }, onNetwork("lab"))
		shared.PodAt(ctx, t, elsewhere)
		Eventually(shared.LookUp).WithContext(ctx).WithArguments(elsewhere, port, "kubernetes.default.svc.cluster.local.").ShouldNot(BeEmpty())
		for name, own := range map[string]*corev1.Service{
			"kubernetes.default.svc.cluster.local.": api, "kubernetes-lab.default.svc.cluster.local.": api,
			"kube-dns.kube-system.svc.cluster.local.": dns, "kube-dns-lab.kube-system.svc.cluster.local.": dns,
		} {
			Eventually(shared.LookUp).WithContext(ctx).WithArguments(from, port, name).Should(HaveExactElements(own.Spec.ClusterIP), name)
			found, _ := shared.LookUp(ctx, elsewhere, port, name) // some do not exist there
			Expect(found).NotTo(ContainElement(own.Spec.ClusterIP), name)
		}

		By("restoring the EndpointSlice, and deleting it with the network")
		Expect(shared.Super.Client.Delete(ctx, slice)).To(Succeed())
		kit.ShouldExist(ctx, shared.Super.Client, slice)
		Expect(t.Client.Delete(ctx, kit.Pod(metav1.NamespaceDefault, "of-lab"))).To(Succeed())
		Expect(t.Client.Delete(ctx, n)).To(Succeed())
		kit.ShouldVanish(ctx, t.Client, n)
		kit.ShouldVanish(ctx, shared.Super.Client, slice)
		kit.ShouldExist(ctx, shared.Super.Client, plain)
	})
})
