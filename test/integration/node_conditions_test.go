package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The conditions of a virtual node", func() {
	It("have the heartbeat of their last change, independent of the kubelet's heartbeats", func(ctx SpecContext) {
		const ns = "nodes"
		red, node := tenant(ctx), bareNode(ctx)
		p := kit.Pod(ns, "web", onNode(node))
		kit.Create(ctx, red.Client, kit.Namespace(ns), p)
		Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("Spec.NodeName", node.Name))
		virtual := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		Expect(kit.Get(ctx, red.Client, virtual)).To(Succeed())

		changed, later := metav1.NewTime(time.Unix(1700000000, 0)), metav1.NewTime(time.Unix(1700000300, 0))
		ready := func(status corev1.ConditionStatus, heartbeat metav1.Time) {
			GinkgoHelper()
			Expect(kit.Get(ctx, super.Client, node)).To(Succeed())
			node.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: status, Reason: "KubeletReady", LastTransitionTime: changed, LastHeartbeatTime: heartbeat,
			}}
			_, err := kubernetes.NewForConfigOrDie(super.Config).CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		ready(corev1.ConditionTrue, changed)
		shown := kit.Read(ctx, red.Client, virtual)
		Eventually(shown).Should(HaveField("Status.Conditions", ConsistOf(And(
			HaveField("LastTransitionTime.Unix()", changed.Unix()), HaveField("LastHeartbeatTime.Unix()", changed.Unix())))))

		version := must(shown()).ResourceVersion
		ready(corev1.ConditionTrue, later)
		Consistently(shown).Should(HaveField("ResourceVersion", version))
	})
})
