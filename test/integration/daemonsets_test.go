package integration

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// daemonSet returns a DaemonSet for bare nodes with labels.
func daemonSet(ns, name string, nodes map[string]string) *appsv1.DaemonSet {
	labels := map[string]string{"app": name}
	p := kit.Pod(ns, name)
	p.Spec.NodeSelector = nodes
	p.Spec.Tolerations = []corev1.Toleration{{Key: bareLabel, Operator: corev1.TolerationOpExists}}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.Spec},
		},
	}
}

// placed returns a function for Eventually that reads the nodes of a tenant's
// pods, of those that have one.
func placed(ctx context.Context, t *local.Tenant, ns string) func() ([]string, error) {
	return func() ([]string, error) {
		all, err := pods(ctx, t.Client, ns)
		var nodes []string
		for _, p := range all {
			if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
				nodes = append(nodes, p.Spec.NodeName)
			}
		}
		return nodes, err
	}
}

// shownNodes returns a function for Eventually that reads the nodes that a tenant
// sees.
func shownNodes(ctx context.Context, t *local.Tenant) func() ([]string, error) {
	return func() ([]string, error) {
		list := &corev1.NodeList{}
		err := t.Client.List(ctx, list)
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, err
	}
}

var _ = Describe("DaemonSets", func() {
	const ns = "daemons"

	for _, isolation := range []tenancyv1alpha1.Isolation{tenancyv1alpha1.IsolationShared, tenancyv1alpha1.IsolationDedicated} {
		It("are refused with a reason by default: "+string(isolation), func(ctx SpecContext) {
			red := tenant(ctx, kit.WithIsolation(isolation))
			kit.Create(ctx, red.Client, kit.Namespace(ns))
			err := red.Client.Create(ctx, daemonSet(ns, "agent", nil))
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("spec.policy.daemonSets")))
		})
	}

	It("run on the nodes that the platform shows to the tenant, by the labels of both, while the policy allows it", func(ctx SpecContext) {
		const pool = "example.com/pool"
		one, two, elsewhere := bareNode(ctx), bareNode(ctx), bareNode(ctx)
		inPool := func(n *corev1.Node) { n.Labels[pool] = one.Name }
		kit.Edit(ctx, super.Client, one, inPool)
		kit.Edit(ctx, super.Client, two, inPool)
		red := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.DaemonSets = tenancyv1alpha1.DaemonSetsRun
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll, NodeSelector: map[string]string{pool: one.Name}}
		})
		Eventually(shownNodes(ctx, red)).Should(ConsistOf(one.Name, two.Name))

		kit.Create(ctx, red.Client, kit.Namespace(ns), daemonSet(ns, "agent", nil))
		Eventually(placed(ctx, red, ns)).Should(ConsistOf(one.Name, two.Name))

		By("a label that the tenant gives to a node")
		const labelled = "labelled"
		kit.Create(ctx, red.Client, kit.Namespace(labelled), daemonSet(labelled, "ssd", map[string]string{"disk": "ssd"}))
		kit.Edit(ctx, red.Client, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: two.Name}}, func(n *corev1.Node) { n.Labels["disk"] = "ssd" })
		Eventually(placed(ctx, red, labelled)).Should(ConsistOf(two.Name))
		Expect(kit.Get(ctx, super.Client, two)).To(Succeed())
		Expect(two.Labels).NotTo(HaveKey("disk"))

		By("a node that joins the pool while it is cordoned")
		kit.Edit(ctx, super.Client, elsewhere, func(n *corev1.Node) {
			inPool(n)
			n.Spec.Unschedulable = true
		})
		Eventually(placed(ctx, red, ns)).Should(ConsistOf(one.Name, two.Name, elsewhere.Name))

		By("a node that leaves the pool")
		kit.Edit(ctx, super.Client, one, func(n *corev1.Node) { delete(n.Labels, pool) })
		Consistently(shownNodes(ctx, red)).Should(ContainElement(one.Name), "its pod still runs there")

		By("a policy that allows them no more")
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy.DaemonSets, vc.Spec.Sync = tenancyv1alpha1.DaemonSetsRefuse, nil
		})
		Eventually(func() error { return red.Client.Create(ctx, daemonSet(ns, "late", nil)) }).WithTimeout(2 * kit.Soon).Should(
			MatchError(ContainSubstring("spec.policy.daemonSets")))
		Expect(slices.Contains(must(shownNodes(ctx, red)()), two.Name)).To(BeTrue(), "its pods run there")
	})
})
