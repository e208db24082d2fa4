package integration

import (
	"context"
	"fmt"
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

// bareLabel is a label of nodes whose kubelet is simulated by specs, and repels
// other pods.
const bareLabel = "example.com/bare"

// bareNode creates a node of the super cluster whose kubelet is simulated by
// specs.
func bareNode(ctx context.Context) *corev1.Node {
	GinkgoHelper()
	name := fmt.Sprintf("bare-%d", time.Now().UnixNano()%1e9)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{bareLabel: name}}}
	kit.Create(ctx, super.Client, node)
	DeferCleanup(func(ctx SpecContext) { removeNode(ctx, node) })
	// Admission has tainted it as not ready.
	kit.Edit(ctx, super.Client, node, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: bareLabel, Effect: corev1.TaintEffectNoSchedule}}
	})
	was := node.DeepCopy()
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("100"),
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	Expect(super.Client.Status().Patch(ctx, node, client.MergeFrom(was))).To(Succeed())
	return node
}

// removeNode finishes the pods on a bare node, as its kubelet would, and
// deletes the node.
func removeNode(ctx context.Context, node *corev1.Node) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(super.Client.Delete(ctx, node))).To(Succeed())
	Eventually(func(g Gomega) {
		list := &corev1.PodList{}
		g.Expect(super.Client.List(ctx, list, client.MatchingFields{"spec.nodeName": node.Name})).To(Succeed())
		for i := range list.Items {
			g.Expect(client.IgnoreNotFound(ends(ctx, &list.Items[i]))).To(Succeed())
		}
		g.Expect(list.Items).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
}

// ends finishes the deletion of a copy, as its kubelet would.
func ends(ctx context.Context, copied *corev1.Pod) error {
	return super.Client.Delete(ctx, copied, client.GracePeriodSeconds(0))
}

// onNode schedules a pod to a bare node.
func onNode(node *corev1.Node) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{bareLabel: node.Name}
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: bareLabel, Operator: corev1.TolerationOpExists})
	}
}

// runs starts the copy of a tenant's pod as the kubelet would, once it is bound
// to its node, and waits until the tenant sees that. It returns the copy.
func runs(ctx context.Context, t *local.Tenant, p *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	copied := kit.SuperOf(t, p)
	Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.NodeName", Not(BeEmpty())))
	kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) {
		s.Phase, s.StartTime, s.PodIP, s.PodIPs = corev1.PodRunning, new(metav1.Now()), "10.9.8.7", []corev1.PodIP{{IP: "10.9.8.7"}}
		for _, c := range copied.Spec.Containers {
			s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, Ready: true, Started: new(true), Resources: c.Resources.DeepCopy(),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
			})
		}
	})
	Eventually(kit.Read(ctx, t.Client, p)).Should(HaveField("Status.Phase", corev1.PodRunning))
	Expect(kit.Get(ctx, t.Client, p)).To(Succeed())
	return copied
}

// conditionOf returns the status of a condition of a pod; none without the
// condition.
func conditionOf(kind corev1.PodConditionType) func(*corev1.Pod) corev1.ConditionStatus {
	return func(p *corev1.Pod) corev1.ConditionStatus {
		for _, c := range p.Status.Conditions {
			if c.Type == kind {
				return c.Status
			}
		}
		return "none"
	}
}

// havePodCondition matches a pod with a condition of this status; "none" is a
// status too.
func havePodCondition(kind corev1.PodConditionType, status corev1.ConditionStatus) gomegatypes.GomegaMatcher {
	return WithTransform(conditionOf(kind), Equal(status))
}
