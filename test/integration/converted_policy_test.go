package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The policy of a converted tenant", Ordered, ContinueOnFailure, func() {
	const ns = "shop"
	var closed, open *local.Tenant
	ranged := tenancyv1alpha1.TenantPolicy{
		AllowNodeName: true, AllowSystemPriority: true, AllowTolerations: []string{"dedicated=red", "example.com/*", "node-role.kubernetes.io/infra"},
		AllowSchedulers: []string{"mine"}, AllowVolumeTypes: []tenancyv1alpha1.VolumeType{"nfs"}, AllowNodeProfiles: true,
		AllowExternalNames: true, EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24", "2001:db8::/32"},
		LoadBalancerCIDRs: []tenancyv1alpha1.CIDR{"198.51.100.0/24"}, LoadBalancerClasses: []string{"example.com/balancer"},
		MaxGracePeriodSeconds: new(int64(7200)),
	}
	opens := func(ctx context.Context, policy *tenancyv1alpha1.TenantPolicy) *local.Tenant {
		GinkgoHelper()
		t := kit.Tenant(ctx, super, kit.VirtualCluster(converted, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Policy = policy }))
		Eventually(func() error { return t.Client.Create(ctx, namespaceOf(ns)) }).Should(Succeed())
		kit.ShouldExist(ctx, t.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}}) // which pods need
		return t
	}
	pod := func(change func(*corev1.PodSpec)) client.Object {
		return kit.Pod(ns, "", func(p *corev1.Pod) {
			p.GenerateName = "a-"
			change(&p.Spec)
		})
	}
	tolerating := func(t corev1.Toleration) client.Object {
		return pod(func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{t} })
	}
	serving := func(change func(*corev1.ServiceSpec)) client.Object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "a-"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		change(&s.Spec)
		return s
	}
	slice := func(family discoveryv1.AddressType, addresses ...string) client.Object {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "a-"}, AddressType: family}
		for _, address := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		}
		return s
	}
	dry := func(t *local.Tenant) client.Client { return client.NewDryRunClient(t.Client) }

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account)
		closed, open = opens(ctx, nil), opens(ctx, ranged.DeepCopy())
	})

	DescribeTable("permits by a field what is forbidden without it",
		func(ctx SpecContext, object client.Object, why string) {
			Expect(dry(open).Create(ctx, object.DeepCopyObject().(client.Object))).To(Succeed())
			Expect(dry(closed).Create(ctx, object)).To(MatchError(ContainSubstring(why)))
		},
		Entry("a node", pod(func(s *corev1.PodSpec) { s.NodeName = "node-0" }), "may not name its node"),
		Entry("a scheduler", pod(func(s *corev1.PodSpec) { s.SchedulerName = "mine" }), "may not name a scheduler"),
		Entry("a system priority", pod(func(s *corev1.PodSpec) { s.PriorityClassName = "system-cluster-critical" }), "may not have a system priority"),
		Entry("a taint with its value", tolerating(corev1.Toleration{Key: "dedicated", Value: "red"}), "may tolerate only"),
		Entry("taints that begin alike", tolerating(corev1.Toleration{Key: "example.com/a", Operator: "Exists"}), "may tolerate only"),
		Entry("a taint of the platform by its key", tolerating(corev1.Toleration{Key: "node-role.kubernetes.io/infra", Operator: "Exists"}), "may tolerate only"),
		Entry("a type of volume", pod(func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.1", Path: "/"}}}}
		}), "a volume must be one of"),
		Entry("a profile", pod(func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("a")}}
		}), "may not choose profiles"),
		Entry("a long grace period", pod(func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(7200)) }), "the grace period"),
		Entry("an external name", serving(func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = corev1.ServiceTypeExternalName, "example.com" }), "ExternalName"),
		Entry("the address of a load balancer", serving(func(s *corev1.ServiceSpec) { s.Type, s.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, "198.51.100.7" }), "may not choose the address"),
		Entry("a load balancer", serving(func(s *corev1.ServiceSpec) {
			s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new("example.com/balancer")
		}), "may not choose its load balancer"),
		Entry("addresses", slice(discoveryv1.AddressTypeIPv4, "192.0.2.1", "192.0.2.255"), "have no Endpoints"),
		Entry("addresses of IPv6", slice(discoveryv1.AddressTypeIPv6, "2001:db8::1"), "have no Endpoints"),
		Entry("names", slice(discoveryv1.AddressTypeFQDN, "example.com"), "have no Endpoints"),
	)

	DescribeTable("permits no more than its fields say",
		func(ctx SpecContext, object client.Object, why string) {
			Expect(dry(open).Create(ctx, object)).To(MatchError(ContainSubstring(why)))
		},
		Entry("a scheduler", pod(func(s *corev1.PodSpec) { s.SchedulerName = "mine2" }), "may not name a scheduler"),
		Entry("another value", tolerating(corev1.Toleration{Key: "dedicated", Value: "blue"}), "may tolerate only"),
		Entry("any value", tolerating(corev1.Toleration{Key: "dedicated", Operator: "Exists"}), "may tolerate only"),
		Entry("a taint of the platform", tolerating(corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"}), "may tolerate only"),
		Entry("a cordoned node", tolerating(corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"}), "may tolerate only"),
		Entry("all taints", tolerating(corev1.Toleration{Operator: "Exists"}), "may tolerate only"),
		Entry("a type of volume", pod(func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.2001-04.com.example:storage", Lun: 1}}}}
		}), "a volume must be one of"),
		Entry("a longer grace period", pod(func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(7201)) }), "the grace period"),
		Entry("another address of a load balancer", serving(func(s *corev1.ServiceSpec) { s.Type, s.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, "198.51.101.7" }), "may not choose the address"),
		Entry("another load balancer", serving(func(s *corev1.ServiceSpec) {
			s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new("example.com/other")
		}), "may not choose its load balancer"),
		Entry("external addresses", serving(func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"198.51.100.7"} }), "may not have external addresses"),
		Entry("other addresses", slice(discoveryv1.AddressTypeIPv4, "192.0.2.1", "192.0.3.1"), "not one of those"),
	)

	It("keeps pods from their node at the level privileged, unless further fields permit more", func(ctx SpecContext) {
		privileged := opens(ctx, &tenancyv1alpha1.TenantPolicy{PodSecurity: tenancyv1alpha1.PodSecurityPrivileged})
		of := func(change func(*corev1.PodSpec)) error { return dry(privileged).Create(ctx, pod(change)) }
		network := func(s *corev1.PodSpec) { s.HostNetwork = true }
		files := func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}
		port := func(number int32) func(*corev1.PodSpec) {
			return func(s *corev1.PodSpec) {
				s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: number}}
			}
		}
		Expect(of(func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		})).To(Succeed())
		probing := func(s *corev1.PodSpec) {
			s.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1", Port: intstr.FromInt32(80)},
			}}
		}
		Expect(of(probing)).To(MatchError(ContainSubstring("may not name a host")))
		Expect(of(network)).To(MatchError(ContainSubstring("may not share the namespaces of its node")))
		Expect(of(func(s *corev1.PodSpec) { s.HostPID = true })).To(MatchError(ContainSubstring("may not share the namespaces of its node")))
		Expect(of(files)).To(MatchError(ContainSubstring("a volume must be one of")))
		Expect(of(port(8080))).To(MatchError(ContainSubstring("may not take this port of its node")))

		kit.Edit(ctx, super.Client, privileged.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.AllowHostNamespaces, vc.Spec.Policy.AllowHostPath, vc.Spec.Policy.AllowProbeHosts = true, true, true
			vc.Spec.Policy.HostPorts = []tenancyv1alpha1.PortRange{{Min: 1, Max: 2}, {Min: 8080, Max: 8081}}
		})
		Eventually(func() error { return of(network) }).Should(Succeed())
		Expect(of(probing)).To(Succeed())
		Expect(of(files)).To(Succeed())
		Expect(of(port(8080))).To(Succeed())
		Expect(of(port(8082))).To(MatchError(ContainSubstring("may not take this port of its node")))
	})

	It("changes for all namespaces, and leaves running pods alone", func(ctx SpecContext) {
		changes := opens(ctx, &tenancyv1alpha1.TenantPolicy{AllowSchedulers: []string{"mine"}, AllowTolerations: []string{"a"}})
		running := kit.Pod(ns, "running", func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.Spec.Tolerations = "mine", []corev1.Toleration{{Key: "a", Operator: "Exists"}}
			p.Finalizers = []string{"example.com/held"}
		})
		kit.Create(ctx, changes.Client, running)
		kit.Edit(ctx, super.Client, changes.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Policy = nil })
		another := func(in string) func() error {
			return func() error {
				return dry(changes).Create(ctx, kit.Pod(in, "another", func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }))
			}
		}
		Eventually(another(ns)).Should(MatchError(ContainSubstring("may not name a scheduler")))
		kit.Create(ctx, changes.Client, namespaceOf("later"))
		Eventually(another("later")).Should(MatchError(ContainSubstring("may not name a scheduler")))
		kit.Edit(ctx, changes.Client, running, func(p *corev1.Pod) { p.Finalizers = nil })
		running.Spec.Tolerations = append(running.Spec.Tolerations, corev1.Toleration{Key: "b", Operator: "Exists"})
		Expect(changes.Client.Update(ctx, running)).To(MatchError(ContainSubstring("may tolerate only")))
	})
})
