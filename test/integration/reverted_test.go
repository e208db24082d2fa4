package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// reverted returns a function that counts the reverts that events report on a
// tenant's object.
func reverted(ctx context.Context, t *local.Tenant, name string) func() (int, error) {
	return func() (int, error) {
		events := &corev1.EventList{}
		if err := t.Client.List(ctx, events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return 0, err
		}
		n := 0
		for i := range events.Items {
			if e := &events.Items[i]; e.InvolvedObject.Name == name && e.Reason == "ChangeReverted" {
				n += int(e.Count)
			}
		}
		return n, nil
	}
}

var _ = Describe("A tenant's change of the super cluster's objects", func() {
	It("is reverted with an event, and a change by the super cluster is synced up without", func(ctx SpecContext) {
		const ns = "cordoned"
		red, node := tenant(ctx), bareNode(ctx)
		p := kit.Pod(ns, "web", onNode(node))
		kit.Create(ctx, red.Client, kit.Namespace(ns), p)
		Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("Spec.NodeName", node.Name))
		virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		shown := kit.Read(ctx, red.Client, virtual)

		for range 2 { // drained for maintenance by a platform admin
			kit.Edit(ctx, super.Client, node, func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable })
			Eventually(shown).Should(HaveField("Spec.Unschedulable", node.Spec.Unschedulable))
		}
		Consistently(reverted(ctx, red, node.Name)).Should(BeZero())

		for n, change := range []func(*corev1.Node){
			func(n *corev1.Node) { n.Spec.Unschedulable = true },
			func(n *corev1.Node) { n.Labels["example.com/mine"] = "yes" },
		} {
			kit.Edit(ctx, red.Client, virtual.DeepCopy(), change)
			Eventually(reverted(ctx, red, node.Name)).Should(Equal(n + 1))
			Eventually(shown).Should(And(HaveField("Spec.Unschedulable", false), HaveField("Labels", Not(HaveKey("example.com/mine")))))
		}
	})
})
