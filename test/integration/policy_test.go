package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// enforcing matches a namespace that enforces a Pod Security level.
func enforcing(level string) gomegatypes.GomegaMatcher {
	return HaveField("Labels", HaveKeyWithValue("pod-security.kubernetes.io/enforce", level))
}

// What a pod can ask of its node.
var (
	inHostNetwork = func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	withHostPath  = func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "logs", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}}}
	}
	withHostPort = func(port int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port}}
		}
	}
	onNamedNode = func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }
)

var _ = Describe("The policy of a tenant", Ordered, func() {
	const ns = "bold"
	var red *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		create(ctx, red.Client, namespace(ns),
			&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Handler: "own"})
	})

	// follows sets the policy. Pods that were refused are tried again soon.
	follows := func(ctx context.Context, policy *tenancyv1alpha1.TenantPolicy) {
		GinkgoHelper()
		edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Policy = policy })
	}
	goesDown := func(ctx context.Context, name string) {
		GinkgoHelper()
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).WithTimeout(2 * soon).Should(ContainElement(name))
	}

	DescribeTable("is by default that a pod may not reach out for its node, and is told what it may not",
		func(ctx SpecContext, name, why string, change func(*corev1.Pod)) {
			p := pod(ns, name, change)
			create(ctx, red.Client, p)
			Eventually(refusals).WithArguments(ctx, red, ns, p).Should(ContainElement(ContainSubstring(why)))
			for _, message := range must(refusals(ctx, red, ns, p)) {
				Expect(message).NotTo(ContainSubstring(red.Key()))
			}
			Expect(podNames(ctx, super.Client, red.Super(ns))).NotTo(ContainElement(name))
			Expect(podNames(ctx, red.Client, ns)).To(ContainElement(name))
		},
		Entry("its network", "network", "spec.hostNetwork: Forbidden", inHostNetwork),
		Entry("its files", "files", "spec.volumes[0].hostPath: Forbidden", withHostPath),
		Entry("its ports", "port", "spec.containers[0].ports[0].hostPort: Invalid value: 8080", withHostPort(8080)),
		Entry("its name", "named", "spec.nodeName: Forbidden", onNamedNode),
		Entry("a runtime that is the tenant's own", "runtime", "spec.runtimeClassName", func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("own") }),
		Entry("its privileges", "privileged", `violates PodSecurity "baseline:latest"`, func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}),
	)

	It("is told to the pods of a Deployment, each", func(ctx SpecContext) {
		create(ctx, red.Client, deployment(ns, "many", 2, withHostPath))
		Eventually(func(g Gomega) {
			told := 0
			all, err := pods(ctx, red.Client, ns)
			g.Expect(err).NotTo(HaveOccurred())
			for _, p := range all {
				messages, err := refusals(ctx, red, ns, &p)
				g.Expect(err).NotTo(HaveOccurred())
				if p.Labels["app.kubernetes.io/name"] == "many" && len(messages) > 0 {
					told++
				}
			}
			g.Expect(told).To(Equal(2))
		}).WithContext(ctx).Should(Succeed())
		Expect(red.Client.Delete(ctx, deployment(ns, "many", 0), client.PropagationPolicy("Foreground"))).To(Succeed())
	})

	It("can be stricter, also for namespaces that exist", func(ctx SpecContext) {
		copied := superOf(red, namespace(ns))
		Expect(read(ctx, super.Client, copied)()).To(enforcing("baseline"))
		follows(ctx, &tenancyv1alpha1.TenantPolicy{PodSecurity: tenancyv1alpha1.PodSecurityRestricted})
		Eventually(read(ctx, super.Client, copied)).Should(enforcing("restricted"))
		p := pod(ns, "root")
		create(ctx, red.Client, p)
		Eventually(refusals).WithArguments(ctx, red, ns, p).Should(ContainElement(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
	})

	It("can allow what it says, and no more", func(ctx SpecContext) {
		follows(ctx, &tenancyv1alpha1.TenantPolicy{
			PodSecurity:   tenancyv1alpha1.PodSecurityPrivileged,
			AllowHostPath: true,
			AllowNodeName: true,
			HostPorts:     []tenancyv1alpha1.PortRange{{Min: 8000, Max: 8999}},
		})
		Eventually(read(ctx, super.Client, superOf(red, namespace(ns)))).Should(enforcing("privileged"))
		for _, name := range []string{"files", "port", "named", "privileged", "root"} {
			goesDown(ctx, name)
		}
		outside := pod(ns, "outside", withHostPort(9000))
		create(ctx, red.Client, outside)
		Eventually(refusals).WithArguments(ctx, red, ns, outside).Should(ContainElement(ContainSubstring("8000-8999")))
		Expect(podNames(ctx, super.Client, red.Super(ns))).NotTo(ContainElement("network"))
		follows(ctx, &tenancyv1alpha1.TenantPolicy{
			PodSecurity: tenancyv1alpha1.PodSecurityPrivileged, AllowHostPath: true, AllowNodeName: true, AllowHostNamespaces: true,
		})
		goesDown(ctx, "network")
	})

	It("shows a pod where it said it wanted to be, and what becomes of it there", func(ctx SpecContext) {
		named := pod(ns, "named")
		Expect(get(ctx, red.Client, named)).To(Succeed())
		Expect(named.Spec.NodeName).To(Equal("node-2"))
		shouldExist(ctx, red.Client, &corev1.Node{ObjectMeta: namespace("node-2").ObjectMeta})
		copied := superOf(red, named)
		Expect(get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied.Spec.NodeName).To(Equal("node-2"))

		By("ending with its copy")
		Expect(super.Client.Delete(ctx, copied)).To(Succeed())
		shouldVanish(ctx, red.Client, named)
		Consistently(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).ShouldNot(ContainElement("named"))

		By("ending in the tenant")
		again := pod(ns, "again", onNamedNode)
		create(ctx, red.Client, again)
		goesDown(ctx, "again")
		Expect(red.Client.Delete(ctx, again)).To(Succeed())
		shouldVanish(ctx, super.Client, superOf(red, again))
		shouldVanish(ctx, red.Client, again)
	})

	It("ends nothing that runs when it grows stricter, and is asked about what is new", func(ctx SpecContext) {
		files := pod(ns, "files")
		Expect(get(ctx, red.Client, files)).To(Succeed())
		told := must(refusals(ctx, red, ns, files))
		follows(ctx, nil)
		Eventually(read(ctx, super.Client, superOf(red, namespace(ns)))).Should(enforcing("baseline"))
		late := pod(ns, "late", withHostPath)
		create(ctx, red.Client, late)
		Eventually(refusals).WithArguments(ctx, red, ns, late).Should(ContainElement(ContainSubstring("hostPath")))

		reports(ctx, superOf(red, files), func(s *corev1.PodStatus) { s.ContainerStatuses[0].RestartCount = 7 })
		Eventually(read(ctx, red.Client, files)).Should(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("RestartCount", int32(7)))))
		Expect(refusals(ctx, red, ns, files)).To(Equal(told))
		Expect(running(ctx, red.Client, ns)).To(ContainElements("files", "port", "privileged", "network"))
	})
})

var _ = Describe("Nodes that the super cluster keeps for itself", func() {
	const ns = "reserved"

	It("are only for pods of tenants whose policy says so", func(ctx SpecContext) {
		red, node := tenant(ctx), bareNode(ctx)
		edit(ctx, super.Client, node, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
		})
		p := pod(ns, "intruder", onNode(node), func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		})
		create(ctx, red.Client, namespace(ns), p)
		Eventually(read(ctx, red.Client, p)).Should(havePodCondition(corev1.PodScheduled, corev1.ConditionFalse))
		Consistently(read(ctx, red.Client, p)).Should(HaveField("Spec.NodeName", BeEmpty()))

		By("allowing it, also to the pod that waits")
		edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.AllowSystemTolerations = true
		})
		Eventually(read(ctx, red.Client, p)).Should(HaveField("Spec.NodeName", node.Name))
	})
})

var _ = Describe("The classes that a pod names", func() {
	const ns = "ranked"

	It("are the super cluster's, if it offers them, and what they stand for is its own to say", func(ctx SpecContext) {
		red := tenant(ctx)
		name := "gold-" + red.VC.Name
		public := metav1.ObjectMeta{Name: name, Labels: map[string]string{names.Public: "true"}}
		classes := []client.Object{
			&schedulingv1.PriorityClass{ObjectMeta: public, Value: 4321, PreemptionPolicy: new(corev1.PreemptNever)},
			&nodev1.RuntimeClass{ObjectMeta: public, Handler: "sandbox", Overhead: &nodev1.Overhead{PodFixed: amounts("cpu", "7m")}},
		}
		create(ctx, super.Client, classes...)
		DeferCleanup(func(ctx SpecContext) {
			for _, c := range classes {
				Expect(client.IgnoreNotFound(super.Client.Delete(ctx, c))).To(Succeed())
			}
		})
		create(ctx, red.Client, namespace(ns), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Value: 1000000})
		shouldExist(ctx, red.Client, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
		shouldExist(ctx, red.Client, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}})

		p := pod(ns, "gold", func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.RuntimeClassName = name, new(name) })
		Eventually(red.Client.Create).WithContext(ctx).WithArguments(p).Should(Succeed()) // admission may not know the classes at once
		copied := superOf(red, p)
		shouldExist(ctx, super.Client, copied)
		Expect(copied.Spec.Priority).To(HaveValue(BeEquivalentTo(4321)))
		Expect(copied.Spec.PreemptionPolicy).To(HaveValue(Equal(corev1.PreemptNever)))
		Expect(copied.Spec.RuntimeClassName).To(HaveValue(Equal(name)))
		Expect(copied.Spec.Overhead).To(haveAmount("cpu", "7m"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("gold"))

		By("doing without a priority of the tenant's own, and of the system's")
		for name, class := range map[string]string{"own": "own", "vital": "system-node-critical"} {
			p := pod(ns, name, func(p *corev1.Pod) { p.Spec.PriorityClassName = class })
			create(ctx, red.Client, p)
			Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement(name))
			copied := must(read(ctx, super.Client, superOf(red, p))())
			Expect(copied.Spec.PriorityClassName).To(BeEmpty())
			Expect(copied.Spec.Priority).To(HaveValue(BeEquivalentTo(0)))
		}

		By("allowing the system's")
		edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.AllowSystemPriority = true
		})
		Eventually(func(g Gomega) {
			p := pod(ns, "critical", func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })
			g.Expect(red.Client.Create(ctx, p)).To(Succeed())
			copied := superOf(red, p)
			shouldExist(ctx, super.Client, copied)
			g.Expect(red.Client.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
			shouldVanish(ctx, red.Client, p)
			g.Expect(copied.Spec.PriorityClassName).To(Equal("system-cluster-critical"))
		}).WithContext(ctx).Should(Succeed())
	})
})
