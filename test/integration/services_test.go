package integration

import (
	"context"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Node ports that specs choose are below 30086: Kubernetes assigns those last to
// Services that choose none.

// haveType matches a Service of a type that satisfies further matchers.
func haveType(kind corev1.ServiceType, more ...gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return And(append(more, HaveField("Spec.Type", kind))...)
}

// nodePorts returns the node ports of a Service, 0 for a port without.
func nodePorts(s *corev1.Service) []int32 {
	ports := make([]int32, len(s.Spec.Ports))
	for i, p := range s.Spec.Ports {
		ports[i] = p.NodePort
	}
	return ports
}

// shouldHaveAddress waits until a copy exists, which has its address from its
// creation on.
func shouldHaveAddress(ctx context.Context, down *corev1.Service, address string) {
	GinkgoHelper()
	down.Spec = corev1.ServiceSpec{}
	kit.ShouldExist(ctx, super.Client, down)
	Expect(down.Spec.ClusterIP).To(Equal(address))
}

var _ = Describe("A Service", Ordered, func() {
	const ns = "services"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))
	})

	It("can change its type repeatedly", func(ctx SpecContext) {
		svc := service(ns, "chameleon")
		kit.Create(ctx, red.Client, svc)
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, svc))
		addressed := HaveField("Spec.ClusterIP", Not(BeElementOf("", "None")))
		Eventually(down).Should(haveType(corev1.ServiceTypeClusterIP, addressed))

		become := func(kind corev1.ServiceType, change func(*corev1.ServiceSpec), want ...gomegatypes.GomegaMatcher) {
			GinkgoHelper()
			kit.Edit(ctx, red.Client, svc, func(s *corev1.Service) {
				s.Spec.Type = kind
				change(&s.Spec)
			})
			Eventually(down).Should(haveType(kind, want...))
			Expect(kit.Rejections(ctx, red, svc)()).To(BeEmpty())
		}
		same := func(*corev1.ServiceSpec) {}
		become(corev1.ServiceTypeNodePort, same, addressed)
		Expect(nodePorts(must(down()))).To(Equal(nodePorts(svc)))
		become(corev1.ServiceTypeLoadBalancer, func(s *corev1.ServiceSpec) {
			s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}, addressed, HaveField("Spec.HealthCheckNodePort", Not(BeZero())))
		become(corev1.ServiceTypeNodePort, same, addressed, HaveField("Spec.HealthCheckNodePort", BeZero()))
		Expect(nodePorts(must(down()))).To(Equal(nodePorts(svc)))
		external := func(s *corev1.ServiceSpec) { s.ExternalName = "example.com" }
		become(corev1.ServiceTypeExternalName, external, HaveField("Spec.ClusterIP", ""), HaveField("Spec.ExternalName", "example.com"))
		become(corev1.ServiceTypeLoadBalancer, func(s *corev1.ServiceSpec) { s.ExternalName = "" }, addressed)
		become(corev1.ServiceTypeClusterIP, same, addressed, WithTransform(nodePorts, HaveEach(BeZero())))
		become(corev1.ServiceTypeExternalName, external, HaveField("Spec.ClusterIP", ""))
		become(corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.ExternalName, s.ClusterIP = "", "None" },
			HaveField("Spec.ClusterIP", "None"))
		become(corev1.ServiceTypeExternalName, external, HaveField("Spec.ClusterIP", ""))
		become(corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.ExternalName = "" }, addressed)
	})

	It("can be replaced by a headless one of the same name", func(ctx SpecContext) {
		svc := service(ns, "headless")
		kit.Create(ctx, red.Client, svc)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, svc))
		Expect(red.Client.Delete(ctx, svc)).To(Succeed())
		again := service(ns, "headless")
		again.Spec.ClusterIP = "None"
		kit.Create(ctx, red.Client, again)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, again))).Should(HaveField("Spec.ClusterIP", "None"))
	})

	It("has the node ports that the tenant sees, even after an admin has changed those of the copy", func(ctx SpecContext) {
		svc := service(ns, "ports")
		svc.Spec.Type = corev1.ServiceTypeNodePort
		kit.Create(ctx, red.Client, svc)
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, svc))
		Eventually(down).Should(WithTransform(nodePorts, Equal(nodePorts(svc))))

		kit.Edit(ctx, super.Client, kit.SuperOf(red, svc), func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 })
		Eventually(down).Should(WithTransform(nodePorts, Equal(nodePorts(svc))))
		kit.Edit(ctx, red.Client, svc, func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30055 })
		Eventually(down).Should(WithTransform(nodePorts, HaveExactElements(int32(30055))))
	})

	It("gets an event when a node port is in use, and the node port when it is free", func(ctx SpecContext) {
		other := service("default", "first")
		other.Spec.Type = corev1.ServiceTypeNodePort
		other.Spec.Ports[0].NodePort = 30077
		kit.Create(ctx, super.Client, other)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, other))).To(Succeed()) })

		svc := service(ns, "second")
		svc.Spec.Type = corev1.ServiceTypeNodePort
		svc.Spec.Ports[0].NodePort = 30077
		kit.Create(ctx, red.Client, svc)
		Eventually(kit.Rejections(ctx, red, svc)).Should(ContainElement(
			And(ContainSubstring("nodePort: Invalid value: 30077: provided port is already allocated"), Not(ContainSubstring(red.Key())))))

		Expect(super.Client.Delete(ctx, other)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, svc))).Should(WithTransform(nodePorts, HaveExactElements(int32(30077))))
	})

	It("has the status of its load balancer", func(ctx SpecContext) {
		svc := service(ns, "balanced")
		svc.Spec.Type = corev1.ServiceTypeLoadBalancer
		kit.Create(ctx, red.Client, svc)
		down := kit.SuperOf(red, svc)
		kit.ShouldExist(ctx, super.Client, down)
		down.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
		down.Status.Conditions = []metav1.Condition{{
			Type: "example.com/Announced", Status: metav1.ConditionTrue, Reason: "Done",
			Message: "announced " + down.Namespace + "/balanced", LastTransitionTime: metav1.Now(),
		}}
		Expect(super.Client.Status().Update(ctx, down)).To(Succeed())
		up := kit.Read(ctx, red.Client, svc)
		Eventually(up).Should(HaveField("Status.LoadBalancer.Ingress", ConsistOf(HaveField("IP", "192.0.2.1"))))
		Eventually(up).Should(HaveField("Status.Conditions", ConsistOf(HaveField("Message", "announced "+ns+"/balanced"))))

		kit.Edit(ctx, red.Client, svc, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
		Eventually(kit.Read(ctx, super.Client, down)).Should(haveType(corev1.ServiceTypeClusterIP))
		Eventually(up).Should(HaveField("Status.LoadBalancer.Ingress", BeEmpty()))
	})

	It("with external IPs is rejected", func(ctx SpecContext) {
		svc := service(ns, "greedy")
		svc.Spec.ExternalIPs = []string{"192.0.2.9"}
		kit.Create(ctx, red.Client, svc)
		Eventually(kit.Rejections(ctx, red, svc)).Should(ContainElement(ContainSubstring("spec.externalIPs is not allowed")))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, svc))).To(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("has the IP families of the super cluster by default", func(ctx SpecContext) {
		prefers, both := service(ns, "prefers"), service(ns, "both")
		prefers.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
		both.Spec.IPFamilyPolicy, both.Spec.ClusterIP, both.Spec.Selector = new(corev1.IPFamilyPolicyRequireDualStack), "None", nil
		both.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		kit.Create(ctx, red.Client, prefers, both)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, prefers))).
			Should(HaveField("Spec", And(HaveField("IPFamilies", HaveLen(1)), HaveField("IPFamilyPolicy", prefers.Spec.IPFamilyPolicy))))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, both))).Should(HaveField("Spec.IPFamilies", both.Spec.IPFamilies))
	})

	It("has the same address in both clusters throughout its life", func(ctx SpecContext) {
		svc := service(ns, "addressed")
		kit.Create(ctx, red.Client, svc)
		shouldHaveAddress(ctx, kit.SuperOf(red, svc), svc.Spec.ClusterIP)
		Expect(super.Client.Delete(ctx, kit.SuperOf(red, svc))).To(Succeed())
		shouldHaveAddress(ctx, kit.SuperOf(red, svc), svc.Spec.ClusterIP)
	})

	It("has its address even if the super cluster's namespace was created without the tenant's range", func(ctx SpecContext) {
		down := kit.SuperOf(red, kit.Namespace(ns))
		kit.Edit(ctx, super.Client, down, func(n *corev1.Namespace) { delete(n.Annotations, names.ServiceCIDR) })
		svc := service(ns, "upgraded")
		kit.Create(ctx, red.Client, svc)
		shouldHaveAddress(ctx, kit.SuperOf(red, svc), svc.Spec.ClusterIP)
		Expect(kit.Rejections(ctx, red, svc)()).To(BeEmpty())
		Expect(kit.Get(ctx, super.Client, down)).To(Succeed())
		Expect(down.Annotations).To(HaveKeyWithValue(names.ServiceCIDR, red.VC.Status.ServiceCIDR))
	})

	It("gets an event when its address is in use, and the address when it is free", func(ctx SpecContext) {
		probe := service(ns, "probe")
		kit.Create(ctx, red.Client, probe)
		Expect(red.Client.Delete(ctx, probe)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, probe))

		squatter := service("default", "squatter")
		squatter.Spec.ClusterIP = probe.Spec.ClusterIP
		Eventually(super.Client.Create).WithContext(ctx).WithArguments(squatter).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, squatter))).To(Succeed()) })
		svc := service(ns, "late")
		svc.Spec.ClusterIP = probe.Spec.ClusterIP
		Eventually(red.Client.Create).WithContext(ctx).WithArguments(svc).Should(Succeed())
		Eventually(kit.Rejections(ctx, red, svc)).Should(ContainElement(
			And(ContainSubstring("provided IP is already allocated"), Not(ContainSubstring(red.Key())))))

		Expect(super.Client.Delete(ctx, squatter)).To(Succeed())
		shouldHaveAddress(ctx, kit.SuperOf(red, svc), svc.Spec.ClusterIP)
	})

	It("cannot have another tenant's address, whatever ranges its own tenant defines", func(ctx SpecContext) {
		blue := tenant(ctx)
		theirs := netip.MustParsePrefix(blue.VC.Status.ServiceCIDR)
		kit.Create(ctx, red.Client, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: "made-up"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{theirs.String()}},
		})
		svc := service(ns, "thief")
		svc.Spec.ClusterIP = theirs.Addr().Next().Next().Next().String()
		Eventually(red.Client.Create).WithContext(ctx).WithArguments(svc).Should(Succeed())
		Eventually(kit.Rejections(ctx, red, svc)).Should(ContainElement(ContainSubstring("is not one of this cluster's")))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, svc))).To(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("for the tenant's apiserver has the first address of the range", func(ctx SpecContext) {
		own := service("default", "kubernetes")
		Expect(kit.Get(ctx, red.Client, own)).To(Succeed())
		first := netip.MustParsePrefix(red.VC.Status.ServiceCIDR).Addr().Next().String()
		Expect(own.Spec.ClusterIP).To(Equal(first))
		shouldHaveAddress(ctx, kit.SuperOf(red, own), first)
	})
})
