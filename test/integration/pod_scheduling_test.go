package integration

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// asideFrom keeps a pod off nodes with a pod that a term selects.
func asideFrom(term corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		term.TopologyKey = corev1.LabelHostname
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
		}}
	}
}

// byApp selects the pods with a label.
func byApp(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

// withLabel adds a label to a pod.
func withLabel(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// nodesOf returns the nodes of a tenant's pods.
func nodesOf(ctx context.Context, t *local.Tenant, namespaces ...string) (nodes []string, err error) {
	for _, ns := range namespaces {
		all, failed := pods(ctx, t.Client, ns)
		err = errors.Join(err, failed)
		for _, p := range all {
			if p.Status.Phase == corev1.PodRunning {
				nodes = append(nodes, p.Spec.NodeName)
			}
		}
	}
	return nodes, err
}

// distinct returns the set of values.
func distinct(values []string) map[string]bool {
	set := map[string]bool{}
	for _, v := range values {
		set[v] = true
	}
	return set
}

var _ = Describe("The scheduling of a pod", Ordered, func() {
	const one, two = "one", "two"
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red, blue = tenant(ctx), tenant(ctx)
		for _, t := range []*local.Tenant{red, blue} {
			kit.Create(ctx, t.Client, kit.Namespace(one), kit.Namespace(two))
		}
	})

	It("can depend on the pods of all of the tenant's namespaces, and of no other tenant", func(ctx SpecContext) {
		everywhere := asideFrom(corev1.PodAffinityTerm{LabelSelector: byApp("spread"), NamespaceSelector: &metav1.LabelSelector{}})
		kit.Create(ctx, blue.Client, deployment(one, "spread", 3, withLabel("app", "spread"), everywhere))
		Eventually(nodesOf).WithContext(ctx).WithArguments(blue, one).Should(HaveLen(3))

		kit.Create(ctx, red.Client, deployment(one, "spread", 2, withLabel("app", "spread"), everywhere),
			kit.Pod(two, "spread", withLabel("app", "spread"), everywhere))
		Eventually(nodesOf).WithContext(ctx).WithArguments(red, one, two).Should(HaveLen(3))
		Expect(distinct(must(nodesOf(ctx, red, one, two)))).To(HaveLen(3))

		fourth := kit.Pod(two, "fourth", withLabel("app", "spread"), everywhere)
		kit.Create(ctx, red.Client, fourth)
		Eventually(kit.Read(ctx, red.Client, fourth)).Should(havePodCondition(corev1.PodScheduled, corev1.ConditionFalse))
		Consistently(kit.Read(ctx, red.Client, fourth)).Should(HaveField("Spec.NodeName", BeEmpty()))
		Expect(red.Client.Delete(ctx, fourth)).To(Succeed())
	})

	It("can depend on the pods of named namespaces", func(ctx SpecContext) {
		kit.Create(ctx, blue.Client, kit.Pod(one, "anchor", withLabel("app", "anchor"), func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-1"}
		}))
		kit.Create(ctx, red.Client, kit.Pod(one, "anchor", withLabel("app", "anchor"), func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-2"}
		}))
		Eventually(running).WithContext(ctx).WithArguments(blue.Client, one).Should(ContainElement("anchor"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, one).Should(ContainElement("anchor"))
		follower := kit.Pod(two, "follower", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					LabelSelector: byApp("anchor"), Namespaces: []string{one}, TopologyKey: corev1.LabelHostname,
				}},
			}}
		})
		kit.Create(ctx, red.Client, follower)
		Eventually(kit.Read(ctx, red.Client, follower)).Should(And(
			HaveField("Status.Phase", corev1.PodRunning), HaveField("Spec.NodeName", "node-2"),
		))
	})

	It("can depend on its own labels, which the tenant's apiserver has already added to its selectors", func(ctx SpecContext) {
		keys := func(p *corev1.Pod) {
			asideFrom(corev1.PodAffinityTerm{
				LabelSelector: byApp("keyed"), MatchLabelKeys: []string{"release"}, MismatchLabelKeys: []string{"tier"},
			})(p)
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: byApp("keyed"), MatchLabelKeys: []string{"release", "none"},
			}}
		}
		for _, release := range []string{"1", "2"} {
			p := kit.Pod(one, "keyed-"+release, withLabel("app", "keyed"), withLabel("release", release), withLabel("tier", release), keys)
			kit.Create(ctx, red.Client, p)
			Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("Status.Phase", corev1.PodRunning))
			term := p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
			Expect(term.LabelSelector.MatchExpressions).To(HaveLen(2), "the apiserver adds keys to selectors")

			copied := kit.SuperOf(red, p)
			kit.ShouldExist(ctx, super.Client, copied)
			down := copied.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
			Expect(down.LabelSelector).To(Equal(term.LabelSelector))
			Expect(copied.Spec.TopologySpreadConstraints[0].LabelSelector).To(Equal(p.Spec.TopologySpreadConstraints[0].LabelSelector))
			Expect(kit.Rejections(ctx, red, p)()).To(BeEmpty())
		}
	})

	It("waits for its gates, and can be narrowed until then", func(ctx SpecContext) {
		p := kit.Pod(one, "gated", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/a"}, {Name: "example.com/b"}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: inHosts("node-1", "node-2", "node-3")}
		})
		kit.Create(ctx, red.Client, p)
		copied := kit.SuperOf(red, p)
		kit.ShouldExist(ctx, super.Client, copied)
		kit.Edit(ctx, red.Client, p, func(p *corev1.Pod) {
			p.Labels["queue"] = "batch"
			p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
			p.Spec.SchedulingGates = p.Spec.SchedulingGates[1:]
		})
		Eventually(kit.Read(ctx, super.Client, copied)).Should(And(
			HaveField("Labels", HaveKeyWithValue("queue", "batch")),
			HaveField("Spec.NodeSelector", HaveKeyWithValue(corev1.LabelOSStable, "linux")),
			HaveField("Spec.SchedulingGates", ConsistOf(HaveField("Name", "example.com/b"))),
		))
		Eventually(kit.Read(ctx, red.Client, p)).Should(havePodCondition(corev1.PodScheduled, corev1.ConditionFalse))

		By("removing the last gate together with a last change of the affinity")
		kit.Edit(ctx, red.Client, p, func(p *corev1.Pod) {
			term := &p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
			term.MatchExpressions = append(term.MatchExpressions, inHosts("node-3").RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions...)
			p.Spec.SchedulingGates = nil
		})
		Eventually(kit.Read(ctx, red.Client, p)).Should(And(
			HaveField("Status.Phase", corev1.PodRunning), HaveField("Spec.NodeName", "node-3"),
		))
		Expect(kit.Rejections(ctx, red, p)()).To(BeEmpty())
	})
})

// inHosts selects nodes by name.
func inHosts(names ...string) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names}},
	}}}}
}
