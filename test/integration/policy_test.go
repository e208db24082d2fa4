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
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// enforcing matches a namespace that enforces a Pod Security level.
func enforcing(level string) gomegatypes.GomegaMatcher {
	return HaveField("Labels", HaveKeyWithValue("pod-security.kubernetes.io/enforce", level))
}

// Ways in which a pod can access its node.
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
		kit.Create(ctx, red.Client, kit.Namespace(ns),
			&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Handler: "own"})
	})

	// follows sets the policy. Rejected pods are retried soon.
	follows := func(ctx context.Context, policy *tenancyv1alpha1.TenantPolicy) {
		GinkgoHelper()
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Policy = policy })
	}
	goesDown := func(ctx context.Context, name string) {
		GinkgoHelper()
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).WithTimeout(2 * kit.Soon).Should(ContainElement(name))
	}

	DescribeTable("rejects access of a pod to its node by default, and reports what is forbidden",
		func(ctx SpecContext, name, why string, change func(*corev1.Pod)) {
			p := kit.Pod(ns, name, change)
			kit.Create(ctx, red.Client, p)
			Eventually(kit.Rejections(ctx, red, p)).Should(ContainElement(ContainSubstring(why)))
			for _, message := range must(kit.Rejections(ctx, red, p)()) {
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

	It("is reported to each pod of a Deployment", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, deployment(ns, "many", 2, withHostPath))
		Eventually(func(g Gomega) {
			told := 0
			all, err := pods(ctx, red.Client, ns)
			g.Expect(err).NotTo(HaveOccurred())
			for _, p := range all {
				messages, err := kit.Rejections(ctx, red, &p)()
				g.Expect(err).NotTo(HaveOccurred())
				if p.Labels["app.kubernetes.io/name"] == "many" && len(messages) > 0 {
					told++
				}
			}
			g.Expect(told).To(Equal(2))
		}).WithContext(ctx).Should(Succeed())
		Expect(red.Client.Delete(ctx, deployment(ns, "many", 0), client.PropagationPolicy("Foreground"))).To(Succeed())
	})

	It("can be stricter, even for existing namespaces", func(ctx SpecContext) {
		copied := kit.SuperOf(red, kit.Namespace(ns))
		Expect(kit.Read(ctx, super.Client, copied)()).To(enforcing("baseline"))
		follows(ctx, &tenancyv1alpha1.TenantPolicy{PodSecurity: tenancyv1alpha1.PodSecurityRestricted})
		Eventually(kit.Read(ctx, super.Client, copied)).Should(enforcing("restricted"))
		Eventually(func() error { // admission sees the label a moment later
			return super.Client.Create(ctx, kit.Pod(copied.Name, "probe"), client.DryRunAll)
		}).Should(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
		p := kit.Pod(ns, "root")
		kit.Create(ctx, red.Client, p)
		Eventually(kit.Rejections(ctx, red, p)).Should(ContainElement(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
	})

	It("can allow exactly what it names", func(ctx SpecContext) {
		follows(ctx, &tenancyv1alpha1.TenantPolicy{
			PodSecurity:   tenancyv1alpha1.PodSecurityPrivileged,
			AllowHostPath: true,
			AllowNodeName: true,
			HostPorts:     []tenancyv1alpha1.PortRange{{Min: 8000, Max: 8999}},
		})
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))).Should(enforcing("privileged"))
		for _, name := range []string{"files", "port", "named", "privileged", "root"} {
			goesDown(ctx, name)
		}
		outside := kit.Pod(ns, "outside", withHostPort(9000))
		kit.Create(ctx, red.Client, outside)
		Eventually(kit.Rejections(ctx, red, outside)).Should(ContainElement(ContainSubstring("8000-8999")))
		Expect(podNames(ctx, super.Client, red.Super(ns))).NotTo(ContainElement("network"))
		follows(ctx, &tenancyv1alpha1.TenantPolicy{
			PodSecurity: tenancyv1alpha1.PodSecurityPrivileged, AllowHostPath: true, AllowNodeName: true, AllowHostNamespaces: true,
		})
		goesDown(ctx, "network")
	})

	It("can allow a pod to choose its node, and its status is synced up", func(ctx SpecContext) {
		named := kit.Pod(ns, "named")
		Expect(kit.Get(ctx, red.Client, named)).To(Succeed())
		Expect(named.Spec.NodeName).To(Equal("node-2"))
		kit.ShouldExist(ctx, red.Client, &corev1.Node{ObjectMeta: kit.Namespace("node-2").ObjectMeta})
		copied := kit.SuperOf(red, named)
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied.Spec.NodeName).To(Equal("node-2"))

		By("deleting it with its copy")
		Expect(super.Client.Delete(ctx, copied)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, named)
		Consistently(podNames).WithContext(ctx).WithArguments(super.Client, red.Super(ns)).ShouldNot(ContainElement("named"))

		By("deleting it in the tenant")
		again := kit.Pod(ns, "again", onNamedNode)
		kit.Create(ctx, red.Client, again)
		goesDown(ctx, "again")
		Expect(red.Client.Delete(ctx, again)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, again))
		kit.ShouldVanish(ctx, red.Client, again)
	})

	It("does not delete running pods when it becomes stricter, and applies to new ones", func(ctx SpecContext) {
		files := kit.Pod(ns, "files")
		Expect(kit.Get(ctx, red.Client, files)).To(Succeed())
		told := must(kit.Rejections(ctx, red, files)())
		follows(ctx, nil)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))).Should(enforcing("baseline"))
		late := kit.Pod(ns, "late", withHostPath)
		kit.Create(ctx, red.Client, late)
		Eventually(kit.Rejections(ctx, red, late)).Should(ContainElement(ContainSubstring("hostPath")))

		kit.SetPodStatus(ctx, super.Client, kit.SuperOf(red, files), func(s *corev1.PodStatus) { s.ContainerStatuses[0].RestartCount = 7 })
		Eventually(kit.Read(ctx, red.Client, files)).Should(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("RestartCount", int32(7)))))
		Expect(kit.Rejections(ctx, red, files)()).To(Equal(told))
		Expect(running(ctx, red.Client, ns)).To(ContainElements("files", "port", "privileged", "network"))
	})
})

var _ = Describe("Nodes that are reserved for the platform", func() {
	const ns = "reserved"

	It("run only pods of tenants whose policy allows it", func(ctx SpecContext) {
		red, node := tenant(ctx), bareNode(ctx)
		kit.Edit(ctx, super.Client, node, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
		})
		p := kit.Pod(ns, "intruder", onNode(node), func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns), p)
		Eventually(kit.Read(ctx, red.Client, p)).Should(havePodCondition(corev1.PodScheduled, corev1.ConditionFalse))
		Consistently(kit.Read(ctx, red.Client, p)).Should(HaveField("Spec.NodeName", BeEmpty()))

		By("allowing it, also for the waiting pod")
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.AllowSystemTolerations = true
		})
		Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("Spec.NodeName", node.Name))
	})
})

var _ = Describe("The priority and runtime classes of a pod", func() {
	const ns = "ranked"

	It("are the super cluster's, if it offers them, with the super cluster's values", func(ctx SpecContext) {
		red := tenant(ctx)
		name := "gold-" + red.VC.Name
		public := metav1.ObjectMeta{Name: name, Labels: map[string]string{names.Public: "true"}}
		classes := []client.Object{
			&schedulingv1.PriorityClass{ObjectMeta: public, Value: 4321, PreemptionPolicy: new(corev1.PreemptNever)},
			&nodev1.RuntimeClass{ObjectMeta: public, Handler: "sandbox", Overhead: &nodev1.Overhead{PodFixed: kit.Amounts("cpu", "7m")}},
		}
		kit.Create(ctx, super.Client, classes...)
		DeferCleanup(func(ctx SpecContext) {
			for _, c := range classes {
				Expect(client.IgnoreNotFound(super.Client.Delete(ctx, c))).To(Succeed())
			}
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Value: 1000000})
		kit.ShouldExist(ctx, red.Client, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
		kit.ShouldExist(ctx, red.Client, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}})

		p := kit.Pod(ns, "gold", func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.RuntimeClassName = name, new(name) })
		Eventually(red.Client.Create).WithContext(ctx).WithArguments(p).Should(Succeed()) // admission may see the classes late
		copied := kit.SuperOf(red, p)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Spec.Priority).To(HaveValue(BeEquivalentTo(4321)))
		Expect(copied.Spec.PreemptionPolicy).To(HaveValue(Equal(corev1.PreemptNever)))
		Expect(copied.Spec.RuntimeClassName).To(HaveValue(Equal(name)))
		Expect(copied.Spec.Overhead).To(haveAmount("cpu", "7m"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("gold"))

		By("ignoring a priority of the tenant's own, and a system priority")
		for name, class := range map[string]string{"own": "own", "vital": "system-node-critical"} {
			p := kit.Pod(ns, name, func(p *corev1.Pod) { p.Spec.PriorityClassName = class })
			kit.Create(ctx, red.Client, p)
			Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement(name))
			copied := must(kit.Read(ctx, super.Client, kit.SuperOf(red, p))())
			Expect(copied.Spec.PriorityClassName).To(BeEmpty())
			Expect(copied.Spec.Priority).To(HaveValue(BeEquivalentTo(0)))
		}

		By("allowing system priorities")
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.AllowSystemPriority = true
		})
		Eventually(func(g Gomega) {
			p := kit.Pod(ns, "critical", func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })
			g.Expect(red.Client.Create(ctx, p)).To(Succeed())
			copied := kit.SuperOf(red, p)
			kit.ShouldExist(ctx, super.Client, copied)
			g.Expect(red.Client.Delete(ctx, p, client.GracePeriodSeconds(0))).To(Succeed())
			kit.ShouldVanish(ctx, red.Client, p)
			g.Expect(copied.Spec.PriorityClassName).To(Equal("system-cluster-critical"))
		}).WithContext(ctx).Should(Succeed())
	})
})
