package escapes

import (
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("DaemonSets and the nodes that a tenant sees", func() {
	attack("a DaemonSet that the policy refuses, created and applied", "Kubernetes documentation: DaemonSets run on all nodes", func(ctx SpecContext) {
		mallory := tenant(ctx)
		labels := map[string]string{"app": "everywhere"}
		everywhere := func() *appsv1.DaemonSet {
			return &appsv1.DaemonSet{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "everywhere"},
				Spec: appsv1.DaemonSetSpec{
					Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: kit.Pod(metav1.NamespaceDefault, "everywhere").Spec,
					},
				},
			}
		}
		refused := MatchError(ContainSubstring("runs no DaemonSets"))
		Expect(mallory.Client.Create(ctx, everywhere())).To(refused)
		//nolint:staticcheck // The typed object is what is applied.
		Expect(mallory.Client.Patch(ctx, everywhere(), client.Apply, client.FieldOwner("mallory"))).To(refused)
		Expect(mallory.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})).To(Succeed())
		Expect(mallory.Client.Create(ctx, everywhere())).To(refused, "nodes of the tenant's own change nothing")
	})

	attack("labels of the platform on a virtual node", "idea: labels of a tenant that the super cluster's scheduler would follow", func(ctx SpecContext) {
		mallory := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{DaemonSets: tenancyv1alpha1.DaemonSetsRun}
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll}
		})
		nodes := &corev1.NodeList{}
		Eventually(func() ([]corev1.Node, error) { return nodes.Items, mallory.Client.List(ctx, nodes) }).ShouldNot(BeEmpty())
		virtual := nodes.Items[0].DeepCopy()
		forged := map[string]string{
			corev1.LabelHostname: "another", corev1.LabelTopologyZone: "forged", names.FromSuper: "false", names.Public: "true",
		}
		kit.Edit(ctx, mallory.Client, virtual, func(n *corev1.Node) {
			n.Labels["mallory.example.com/mine"] = "yes"
			maps.Copy(n.Labels, forged)
		})
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: virtual.Name}}
		Eventually(kit.Read(ctx, mallory.Client, virtual)).Should(HaveField("Labels", And(
			HaveKeyWithValue("mallory.example.com/mine", "yes"), HaveKeyWithValue(names.FromSuper, "true"),
			HaveKeyWithValue(corev1.LabelHostname, Not(Equal("another"))), Not(HaveKeyWithValue(corev1.LabelTopologyZone, "forged")),
			Not(HaveKey(names.Public)))))
		Expect(kit.Get(ctx, super.Client, node)).To(Succeed())
		Expect(node.Labels).NotTo(HaveKey("mallory.example.com/mine"))
		Expect(node.Labels).NotTo(HaveKeyWithValue(corev1.LabelTopologyZone, "forged"))
	})
})
