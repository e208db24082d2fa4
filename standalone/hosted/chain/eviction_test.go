package chain_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// protect creates a running pod, and a budget that allows some disruptions.
func protect(t *testing.T, client kubernetes.Interface, allowed int32) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	running := pod()
	running.Labels = map[string]string{"app": "x"}
	running, err := client.CoreV1().Pods("team").Create(ctx, running, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	running.Status.Phase = corev1.PodRunning
	running.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	g.Expect(client.CoreV1().Pods("team").UpdateStatus(ctx, running, metav1.UpdateOptions{})).Error().NotTo(HaveOccurred())
	budgets, one := client.PolicyV1().PodDisruptionBudgets("team"), intstr.FromInt32(1)
	budget, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: running.Labels}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: allowed,
		CurrentHealthy: 1 + allowed, DesiredHealthy: 1, ExpectedPods: 1 + allowed,
	}
	g.Expect(budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{})).Error().NotTo(HaveOccurred())
}

func disruptions(t *testing.T, client kubernetes.Interface) int32 {
	t.Helper()
	budget, err := client.PolicyV1().PodDisruptionBudgets("team").Get(t.Context(), "x", metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return budget.Status.DisruptionsAllowed
}

// TestEvictions: the budgets of a tenant protect its pods, and no others.
func TestEvictions(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	red, blue := redAndBlue(t)
	protect(t, red, 0)
	protect(t, blue, 1)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"}}
	for range 2 {
		err := red.CoreV1().Pods("team").EvictV1(ctx, eviction)
		g.Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
	}
	g.Expect(disruptions(t, blue)).To(Equal(int32(1)))
	g.Expect(blue.CoreV1().Pods("team").EvictV1(ctx, eviction)).To(Succeed())
	g.Expect(disruptions(t, blue)).To(BeZero())
	_, err := red.CoreV1().Pods("team").Get(ctx, "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(red.PolicyV1().PodDisruptionBudgets("team").Delete(ctx, "x", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(red.CoreV1().Pods("team").EvictV1(ctx, eviction)).To(Succeed())
}
