package escapes

import (
	"context"
	"maps"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// service returns a service with one port and without a selector.
func service(ns, name string, change ...func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	for _, f := range change {
		f(&s.Spec)
	}
	return s
}

var _ = Describe("Addresses of Services", Ordered, func() {
	const (
		ns     = "services"
		cve    = "CVE-2020-8554: man in the middle by addresses of Services"
		review = "review: clusterIP without clusterIPs took another tenant's DNS"
	)
	var (
		mallory *local.Tenant
		hostile *local.Hostile
		honest  *local.Tenant // of which the apiserver is not hostile
		victim  string        // the address of its DNS
	)
	// says makes the syncer read other fields of a service than the apiserver stores.
	says := func(name string, fields map[string]any) {
		DeferCleanup(hostile.On(local.Reads("services"), local.RewriteItems(func(object map[string]any) {
			if object["metadata"].(map[string]any)["name"] != name {
				return
			}
			maps.Copy(object["spec"].(map[string]any), fields)
		})))
	}

	BeforeAll(func(ctx SpecContext) {
		honest = tenant(ctx)
		theirs := netip.MustParsePrefix(honest.VC.Status.ServiceCIDR)
		victim = addresses.In(theirs, addresses.DNS).String()
		// The last part of the pool, which is only given to a tenant that asks for it.
		mallory, hostile = hostileTenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.95.240.0/20" })
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		kit.Create(ctx, honest.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(ns)))
	})

	attack("another tenant's address in spec.clusterIP alone", review, func(ctx SpecContext) {
		says("alone", map[string]any{"clusterIP": victim, "clusterIPs": nil})
		svc := service(ns, "alone")
		kit.Create(ctx, mallory.Client, svc)
		shouldBeRejected(ctx, mallory, svc, "is not one of this cluster's")
	})

	attack("another tenant's address behind one of its own", review, func(ctx SpecContext) {
		says("behind", map[string]any{"clusterIP": "10.95.240.9", "clusterIPs": []any{"10.95.240.9", victim}})
		svc := service(ns, "behind")
		kit.Create(ctx, mallory.Client, svc)
		shouldBeRejected(ctx, mallory, svc, "is not one of this cluster's")
	})

	attack("another tenant's address behind None", review, func(ctx SpecContext) {
		says("headless", map[string]any{"clusterIP": "None", "clusterIPs": []any{victim}})
		svc := service(ns, "headless")
		kit.Create(ctx, mallory.Client, svc)
		shouldBeRejected(ctx, mallory, svc, "spec.clusterIP is None")
	})

	attack("another tenant's address as IPv4 in IPv6", review, func(ctx SpecContext) {
		says("mapped", map[string]any{"clusterIP": "::ffff:" + victim, "clusterIPs": []any{"::ffff:" + victim}})
		svc := service(ns, "mapped")
		kit.Create(ctx, mallory.Client, svc)
		shouldBeRejected(ctx, mallory, svc, "is not one of this cluster's")
	})

	attack("an IPv6 address behind one of its own, as of a tenant with both IP families", "idea: only the first address would be verified",
		func(ctx SpecContext) {
			says("six", map[string]any{
				"clusterIP": "10.95.240.11", "clusterIPs": []any{"10.95.240.11", "fd00:64::a"},
				"ipFamilies": []any{"IPv4", "IPv6"}, "ipFamilyPolicy": "RequireDualStack",
			})
			svc := service(ns, "six")
			kit.Create(ctx, mallory.Client, svc)
			shouldBeRejected(ctx, mallory, svc, "is not one of this cluster's")
		})

	attack("no address, for the super cluster to choose one of another tenant's",
		"review: the super cluster's allocator chooses out of all ranges", func(ctx SpecContext) {
			says("any", map[string]any{"clusterIP": "", "clusterIPs": nil})
			svc := service(ns, "any")
			kit.Create(ctx, mallory.Client, svc)
			shouldBeRejected(ctx, mallory, svc, "has no address yet")
		})

	attack("external IPs, which nodes lead to the tenant's pods", cve, func(ctx SpecContext) {
		svc := service(ns, "external", func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"8.8.8.8"} })
		kit.Create(ctx, mallory.Client, svc)
		shouldBeRejected(ctx, mallory, svc, "spec.externalIPs is not allowed")
	})

	attack("a status of its own making, which nodes lead to the tenant's pods", cve, func(ctx SpecContext) {
		svc := service(ns, "status", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer })
		kit.Create(ctx, honest.Client, svc)
		kit.EditStatus(ctx, honest.Client, svc, func(s *corev1.Service) { // the syncer changes it, too
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "8.8.8.8"}}
		})
		down := kit.SuperOf(honest, svc)
		kit.ShouldExist(ctx, super.Client, down)
		Consistently(kit.Read(ctx, super.Client, down)).Should(HaveField("Status.LoadBalancer.Ingress", BeEmpty()))
		Eventually(kit.Read(ctx, honest.Client, svc)).Should(HaveField("Status.LoadBalancer.Ingress", BeEmpty()))
	})

	attack("a load balancer's address of its choice", "MetalLB documentation: spec.loadBalancerIP, shared addresses", func(ctx SpecContext) {
		svc := service(ns, "balancer", func(s *corev1.ServiceSpec) {
			s.Type, s.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, "192.0.2.1"
		})
		kit.Create(ctx, mallory.Client, svc)
		shouldBeRejected(ctx, mallory, svc, "spec.loadBalancerIP")
	})

	attack("a class of load balancers that is not offered", "Kubernetes documentation: Service, load balancer class", func(ctx SpecContext) {
		svc := service(ns, "class", func(s *corev1.ServiceSpec) {
			s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new("example.com/internal")
		})
		kit.Create(ctx, mallory.Client, svc)
		shouldBeRejected(ctx, mallory, svc, "spec.loadBalancerClass")
	})
})

var _ = Describe("Endpoints of a tenant's making", Ordered, func() {
	const (
		ns  = "endpoints"
		cve = "CVE-2021-25740: endpoints that lead load balancers and Ingress controllers to others' pods"
		why = "endpoints may lead to the pods of this cluster"
	)
	var (
		mallory     *local.Tenant
		own, victim *corev1.Pod // that run
	)
	run := func(ctx context.Context, t *local.Tenant, name string) *corev1.Pod {
		GinkgoHelper()
		p := kit.Pod(ns, name)
		kit.Create(ctx, t.Client, p)
		Eventually(kit.Read(ctx, t.Client, p)).Should(HaveField("Status.PodIP", Not(BeEmpty())))
		Expect(kit.Get(ctx, t.Client, p)).To(Succeed())
		return p
	}
	addresses := func(s *discoveryv1.EndpointSlice) []string {
		var all []string
		for _, e := range s.Endpoints {
			all = append(all, e.Addresses...)
		}
		return all
	}

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		other := tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns), service(ns, "web"))
		kit.Create(ctx, other.Client, kit.Namespace(ns))
		own, victim = run(ctx, mallory, "own"), run(ctx, other, "victim")
	})

	attack("Endpoints that lead to another tenant's pod", cve, func(ctx SpecContext) {
		e := &corev1.Endpoints{ //nolint:staticcheck // what old clients write
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
			Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // see above
				Addresses: []corev1.EndpointAddress{{IP: victim.Status.PodIP}}, Ports: []corev1.EndpointPort{{Name: "http", Port: 80}},
			}},
		}
		kit.Create(ctx, mallory.Client, e)
		shouldBeRejected(ctx, mallory, e, why)
	})

	attack("a slice that leads to another tenant's pod and claims that it is one of its own", cve, func(ctx SpecContext) {
		s := kit.EndpointSlice(ns, "claims", "web", victim.Status.PodIP)
		s.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: own.Name, UID: own.UID}
		kit.Create(ctx, mallory.Client, s)
		shouldBeRejected(ctx, mallory, s, why)
	})

	attack("a slice that leads to another tenant's pod among its own", cve, func(ctx SpecContext) {
		s := kit.EndpointSlice(ns, "among", "web", own.Status.PodIP, victim.Status.PodIP)
		kit.Create(ctx, mallory.Client, s)
		Eventually(kit.Rejections(ctx, mallory, s)).Should(ContainElement(ContainSubstring(victim.Status.PodIP)))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(mallory, s))).Should(WithTransform(addresses, ConsistOf(own.Status.PodIP)))
	})

	attack("a slice that leads to another tenant's pod later", cve, func(ctx SpecContext) {
		s := kit.EndpointSlice(ns, "later", "web", own.Status.PodIP)
		kit.Create(ctx, mallory.Client, s)
		down := kit.Read(ctx, super.Client, kit.SuperOf(mallory, s))
		Eventually(down).Should(WithTransform(addresses, ConsistOf(own.Status.PodIP)))
		kit.Edit(ctx, mallory.Client, s, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{victim.Status.PodIP} })
		Eventually(down).Should(WithTransform(addresses, BeEmpty()))
		Eventually(kit.Rejections(ctx, mallory, s)).Should(ContainElement(ContainSubstring(why)))
	})

	attack("a slice that keeps the address of a pod that is gone, until another tenant's has it", cve, func(ctx SpecContext) {
		gone := run(ctx, mallory, "gone")
		s := kit.EndpointSlice(ns, "stale", "web", gone.Status.PodIP)
		kit.Create(ctx, mallory.Client, s)
		down := kit.Read(ctx, super.Client, kit.SuperOf(mallory, s))
		Eventually(down).Should(WithTransform(addresses, ConsistOf(gone.Status.PodIP)))
		Expect(mallory.Client.Delete(ctx, gone, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(down).Should(WithTransform(addresses, BeEmpty()))
	})

	attack("a slice that leads to a node, or to the super cluster's apiserver", cve, func(ctx SpecContext) {
		node := kit.SuperOf(mallory, own)
		Expect(kit.Get(ctx, super.Client, node)).To(Succeed())
		s := kit.EndpointSlice(ns, "node", "web", node.Status.HostIP, "10.0.0.1")
		kit.Create(ctx, mallory.Client, s)
		shouldBeRejected(ctx, mallory, s, why)
	})

	attack("endpoints of the tenant's apiserver that lead elsewhere", cve, func(ctx SpecContext) {
		s := kit.EndpointSlice("default", "kubernetes-2", "kubernetes", victim.Status.PodIP)
		kit.Create(ctx, mallory.Client, s)
		shouldBeRejected(ctx, mallory, s, why)
	})

	attack("a slice that draws the traffic of a Service of the platform's", cve, func(ctx SpecContext) {
		headless := func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }
		kit.Create(ctx, super.Client, service(mallory.Super(ns), "platform", headless))
		s := kit.EndpointSlice(ns, "draws", "platform", own.Status.PodIP)
		kit.Create(ctx, mallory.Client, s)
		shouldBeRejected(ctx, mallory, s, "not this cluster's")
	})
})

var _ = Describe("The time that a pod takes to end", Ordered, func() {
	const (
		ns     = "grace"
		years  = int64(63 * 365 * 24 * 3600)
		most   = int64(3600)
		review = "review: a grace period of 63 years kept a tenant from being deleted"
	)
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a grace period of 63 years", review, func(ctx SpecContext) {
		p := kit.Pod(ns, "years", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(years) })
		kit.Create(ctx, mallory.Client, p)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(mallory, p))).
			Should(HaveField("Spec.TerminationGracePeriodSeconds", HaveValue(Equal(most))))
	})

	attack("a grace period of 63 years after a probe has failed", review, func(ctx SpecContext) {
		p := kit.Pod(ns, "probe", func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{
				ProbeHandler:                  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"false"}}},
				TerminationGracePeriodSeconds: new(years),
			}
		})
		kit.Create(ctx, mallory.Client, p)
		down := kit.SuperOf(mallory, p)
		kit.ShouldExist(ctx, super.Client, down)
		Expect(down.Spec.Containers[0].LivenessProbe.TerminationGracePeriodSeconds).To(HaveValue(Equal(most)))
	})
})
