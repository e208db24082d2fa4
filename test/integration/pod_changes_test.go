package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A pod that runs", Ordered, func() {
	const ns = "live"
	var (
		red  *local.Tenant
		node *corev1.Node
	)

	BeforeAll(func(ctx SpecContext) {
		red, node = tenant(ctx), bareNode(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), configMap(ns, "tools", map[string]string{"TOOL": "strace"}))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))
		// Defaults of the super cluster.
		limits := &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: red.Super(ns), Name: "defaults"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type:           corev1.LimitTypeContainer,
				DefaultRequest: kit.Amounts("cpu", "10m", "memory", "1Gi"), Default: kit.Amounts("cpu", "8", "memory", "8Gi"),
			}}},
		}
		kit.Create(ctx, super.Client, limits)
		var listed corev1.LimitRangeList
		Eventually(super.Client.List).WithContext(ctx).WithArguments(&listed, client.InNamespace(red.Super(ns))).Should(Succeed())
	})

	// through updates a pod through a subresource, as kubectl debug and kubectl
	// patch --subresource do.
	through := func(ctx context.Context, name string, p *corev1.Pod, change func(*corev1.Pod)) {
		GinkgoHelper()
		Eventually(func(ctx context.Context) error {
			if err := kit.Get(ctx, red.Client, p); err != nil {
				return err
			}
			change(p)
			return red.Client.SubResource(name).Update(ctx, p)
		}).WithContext(ctx).Should(Succeed())
	}
	debug := func(name string, change ...func(*corev1.EphemeralContainer)) func(*corev1.Pod) {
		c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "example/debug:1"}}
		for _, f := range change {
			f(&c)
		}
		return func(p *corev1.Pod) { p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, c) }
	}

	// tracing sets the capabilities that kubectl debug requests by default.
	tracing := func(c *corev1.EphemeralContainer) {
		c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}}
	}

	It("accepts ephemeral containers, after their references, and has their status", func(ctx SpecContext) {
		p := kit.Pod(ns, "debugged", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		tools := kit.SuperOf(red, configMap(ns, "tools", nil))
		Expect(kit.Get(ctx, super.Client, tools)).NotTo(Succeed())

		through(ctx, "ephemeralcontainers", p, debug("debug", func(c *corev1.EphemeralContainer) {
			c.TargetContainerName = "main"
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tools"}}}}
			c.Env = []corev1.EnvVar{{Name: "NS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}
		}))
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.EphemeralContainers", HaveLen(1)))
		Expect(kit.Get(ctx, super.Client, tools)).To(Succeed())
		added := must(kit.Read(ctx, super.Client, copied)()).Spec.EphemeralContainers[0]
		Expect(added.TargetContainerName).To(Equal("main"))
		Expect(fieldOf(must(kit.Read(ctx, super.Client, copied)()), added.Env[0].ValueFrom.FieldRef.FieldPath)).To(Equal(ns))

		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) {
			s.EphemeralContainerStatuses = []corev1.ContainerStatus{{
				Name: "debug", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
			}}
		})
		Eventually(kit.Read(ctx, red.Client, p)).
			Should(HaveField("Status.EphemeralContainerStatuses", ConsistOf(HaveField("State.Running", Not(BeNil())))))

		through(ctx, "ephemeralcontainers", p, debug("another"))
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.EphemeralContainers", HaveLen(2)))
	})

	It("gets an event when an ephemeral container is rejected, and everything else is synced", func(ctx SpecContext) {
		p := kit.Pod(ns, "prying", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		through(ctx, "ephemeralcontainers", p, debug("root", func(c *corev1.EphemeralContainer) {
			c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}))
		Eventually(kit.Rejections(ctx, red, p)).Should(ContainElement(ContainSubstring("violates PodSecurity")))
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) { s.ContainerStatuses[0].RestartCount = 3 })
		Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("RestartCount", int32(3)))))
		kit.Edit(ctx, red.Client, p, func(p *corev1.Pod) { p.Labels["tier"] = "front" })
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Labels", HaveKeyWithValue("tier", "front")))
		Expect(must(kit.Read(ctx, super.Client, copied)()).Spec.EphemeralContainers).To(BeEmpty())

		By("accepting those that are allowed, although the tenant cannot remove the one that is not")
		through(ctx, "ephemeralcontainers", p, debug("allowed"))
		through(ctx, "ephemeralcontainers", p, func(p *corev1.Pod) { debug("tracing", tracing)(p); debug("later")(p) })
		Eventually(kit.Read(ctx, super.Client, copied)).
			Should(HaveField("Spec.EphemeralContainers", ConsistOf(HaveField("Name", "allowed"), HaveField("Name", "later"))))
		Eventually(kit.Rejections(ctx, red, p)).Should(ContainElement(
			And(ContainSubstring(`container "root"`), ContainSubstring(`container "tracing"`), ContainSubstring("SYS_PTRACE")),
		))
		Expect(must(kit.Read(ctx, red.Client, p)()).Spec.EphemeralContainers).To(HaveLen(4))
	})

	It("has its status even if the super cluster's defaults give the copy another QoS class", func(ctx SpecContext) {
		p := kit.Pod(ns, "best-effort", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		Expect(copied.Status.QOSClass).To(Equal(corev1.PodQOSBurstable))
		Expect(must(kit.Read(ctx, red.Client, p)()).Status.QOSClass).To(Equal(corev1.PodQOSBestEffort))
	})

	It("is resized in place, and reports the progress", func(ctx SpecContext) {
		p := kit.Pod(ns, "growing", onNode(node), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: kit.Amounts("cpu", "1"), Limits: kit.Amounts("cpu", "2")}
		})
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		By("keeping what the super cluster's admission added")
		Expect(copied.Spec.Containers[0].Resources.Limits).To(HaveLen(2))

		through(ctx, "resize", p, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: kit.Amounts("cpu", "3"), Limits: kit.Amounts("cpu", "4")}
		})
		resources := func() (corev1.ResourceRequirements, error) {
			now, err := kit.Read(ctx, super.Client, copied)()
			return now.Spec.Containers[0].Resources, err
		}
		Eventually(resources).Should(And(HaveField("Requests", haveAmount("cpu", "3")), HaveField("Limits", haveAmount("cpu", "4"))))
		Expect(resources()).To(And(HaveField("Requests", haveAmount("memory", "1Gi")), HaveField("Limits", haveAmount("memory", "8Gi"))))

		By("reporting that it waits")
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) {
			s.Conditions = append(s.Conditions, corev1.PodCondition{
				Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, LastTransitionTime: metav1.Now(),
			})
		})
		Eventually(kit.Read(ctx, red.Client, p)).Should(havePodCondition(corev1.PodResizePending, corev1.ConditionTrue))
		By("reporting that it is done")
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) {
			s.Conditions = s.Conditions[:len(s.Conditions)-1]
			s.ContainerStatuses[0].Resources = new(must(resources()))
			s.ContainerStatuses[0].AllocatedResources = must(resources()).Requests
		})
		Eventually(kit.Read(ctx, red.Client, p)).Should(And(
			havePodCondition(corev1.PodResizePending, "none"),
			HaveField("Status.ContainerStatuses", ConsistOf(HaveField("AllocatedResources", haveAmount("cpu", "3")))),
		))

		By("resizing it back")
		through(ctx, "resize", p, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = kit.Amounts("cpu", "1") })
		Eventually(resources).Should(HaveField("Requests", haveAmount("cpu", "1")))
	})

	It("is resized at the pod level, even before it runs", func(ctx SpecContext) {
		p := kit.Pod("default", "waiting", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{bareLabel: "nowhere"}
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: kit.Amounts("cpu", "1"), Limits: kit.Amounts("cpu", "4")}
		})
		kit.Create(ctx, red.Client, p)
		copied := kit.SuperOf(red, p)
		kit.ShouldExist(ctx, super.Client, copied)
		through(ctx, "resize", p, func(p *corev1.Pod) { p.Spec.Resources.Requests = kit.Amounts("cpu", "2") })
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.Resources.Requests", haveAmount("cpu", "2")))
	})

	It("gets an event when the super cluster rejects a resize", func(ctx SpecContext) {
		p := kit.Pod(ns, "greedy", onNode(node), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: kit.Amounts("cpu", "1"), Limits: kit.Amounts("cpu", "2")}
		})
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: red.Super(ns), Name: "some"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("1")}},
		}
		kit.Create(ctx, super.Client, quota)
		Eventually(kit.Read(ctx, super.Client, quota)).Should(HaveField("Status.Hard", Not(BeEmpty())))
		through(ctx, "resize", p, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = kit.Amounts("cpu", "9") })
		Eventually(kit.Rejections(ctx, red, p)).Should(ContainElement(ContainSubstring("exceeded quota")))
		Expect(super.Client.Delete(ctx, quota)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, copied)).
			Should(HaveField("Spec.Containers", ConsistOf(HaveField("Resources.Limits", haveAmount("cpu", "9")))))
	})

	It("is ready when the tenant's controllers have set its readiness gates", func(ctx SpecContext) {
		const gate = "example.com/in-rotation"
		p := kit.Pod(ns, "gated", onNode(node), func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}} })
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) {
			s.Conditions = append(s.Conditions, podCondition(corev1.PodReady, corev1.ConditionFalse))
		})
		Eventually(kit.Read(ctx, red.Client, p)).Should(havePodCondition(corev1.PodReady, corev1.ConditionFalse))

		says := func(status corev1.ConditionStatus, at metav1.Time) {
			GinkgoHelper()
			Eventually(func(ctx context.Context) error {
				if err := kit.Get(ctx, red.Client, p); err != nil {
					return err
				}
				was := p.DeepCopy()
				c := podCondition(gate, status)
				c.LastTransitionTime = at
				p.Status.Conditions = []corev1.PodCondition{c}
				return red.Client.Status().Patch(ctx, p, client.StrategicMergeFrom(was.DeepCopy(), client.MergeFromWithOptimisticLock{}))
			}).WithContext(ctx).Should(Succeed())
		}
		says(corev1.ConditionTrue, metav1.Now())
		Eventually(kit.Read(ctx, super.Client, copied)).Should(havePodCondition(gate, corev1.ConditionTrue))
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) { conditionIn(s, corev1.PodReady).Status = corev1.ConditionTrue })
		Eventually(kit.Read(ctx, red.Client, p)).Should(And(
			havePodCondition(corev1.PodReady, corev1.ConditionTrue), havePodCondition(gate, corev1.ConditionTrue),
		))

		By("closing one without a time")
		says(corev1.ConditionFalse, metav1.Time{})
		Eventually(kit.Read(ctx, super.Client, copied)).Should(havePodCondition(gate, corev1.ConditionFalse))

		By("another controller of the super cluster making the last change")
		says(corev1.ConditionFalse, metav1.NewTime(time.Now().Add(-time.Hour)))
		// Only a later change shows in the copy that the syncer has seen the time.
		kit.Edit(ctx, red.Client, p, func(p *corev1.Pod) { p.Labels["later"] = "yes" })
		Eventually(kit.Read(ctx, super.Client, copied)).Should(And(
			havePodCondition(gate, corev1.ConditionFalse), HaveField("Labels", HaveKeyWithValue("later", "yes")),
		))
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) {
			*conditionIn(s, gate) = podCondition(gate, corev1.ConditionTrue)
		})
		Eventually(kit.Read(ctx, red.Client, p)).Should(havePodCondition(gate, corev1.ConditionTrue))
		Consistently(kit.Read(ctx, super.Client, copied)).Should(havePodCondition(gate, corev1.ConditionTrue))
	})

	It("keeps conditions of the tenant's controllers, and has those of the node", func(ctx SpecContext) {
		p := kit.Pod(ns, "noted", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		was := p.DeepCopy()
		p.Status.Conditions = append(p.Status.Conditions, podCondition("example.com/noted", corev1.ConditionTrue))
		Expect(red.Client.Status().Patch(ctx, p, client.StrategicMergeFrom(was))).To(Succeed())
		kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) { s.ContainerStatuses[0].RestartCount = 1 })
		Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("Status.ContainerStatuses", ConsistOf(HaveField("RestartCount", int32(1)))))
		Consistently(kit.Read(ctx, red.Client, p)).Should(havePodCondition("example.com/noted", corev1.ConditionTrue))
		Expect(kit.Read(ctx, super.Client, copied)()).To(havePodCondition("example.com/noted", "none"))
	})

	It("accepts additional tolerations, except those of the super cluster's reserved nodes", func(ctx SpecContext) {
		p := kit.Pod(ns, "tolerant", onNode(node))
		kit.Create(ctx, red.Client, p)
		copied := runs(ctx, red, p)
		kit.Edit(ctx, red.Client, p, func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations,
				corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
				corev1.Toleration{Operator: corev1.TolerationOpExists},
				corev1.Toleration{Key: "example.com/new", Operator: corev1.TolerationOpExists},
			)
		})
		keys := func() (keys []string, err error) {
			now, err := kit.Read(ctx, super.Client, copied)()
			for _, t := range now.Spec.Tolerations {
				keys = append(keys, t.Key)
			}
			return keys, err
		}
		Eventually(keys).Should(ContainElement("example.com/new"))
		Expect(keys()).To(ConsistOf(bareLabel, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "example.com/new"))
	})
})

// haveAmount matches a list with an amount of a resource, whatever its
// notation.
func haveAmount(name corev1.ResourceName, quantity string) gomegatypes.GomegaMatcher {
	return WithTransform(func(list corev1.ResourceList) string {
		have := list[name]
		return have.String()
	}, Equal(quantity))
}

// podCondition returns a condition that changed now.
func podCondition(kind corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()}
}

// conditionIn returns a condition of a status for modification.
func conditionIn(s *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind})
	return &s.Conditions[len(s.Conditions)-1]
}
