package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

var _ = Describe("What pods use", Ordered, func() {
	var ns, others string

	BeforeAll(func(ctx SpecContext) {
		ns, others = newNamespace(ctx, red), newNamespace(ctx, blue)
		create(ctx, red, busy(ns, "busy"), scaled(ns, "busy"))
		idle := pod(others, "idle", agnhost, "pause")
		create(ctx, blue, idle)
		shouldBeReady(ctx, blue, idle)
	})

	It("is what kubectl top pod shows, of the tenant's own", func(ctx SpecContext) {
		Eventually(kubectlOf(ctx, red).run).WithContext(ctx).WithArguments("", "top", "pod", "--containers", "-n", ns, "-l", "app=busy").
			Should(MatchRegexp(`busy-\S+\s+main\s+\d+m\s+\d+Mi`))
		for _, key := range []string{names.AdminKubeconfigKey, names.GatewayKubeconfigKey} {
			as := kubectlWith(ctx, blue, key)
			Eventually(as.run).WithContext(ctx).WithArguments("", "top", "pod", "-A").Should(MatchRegexp(others+`\s+idle\s+\d+m`), key)
			Expect(as.run(ctx, "", "top", "pod", "-A")).
				NotTo(Or(ContainSubstring("busy"), ContainSubstring("metrics-server"), ContainSubstring(blue.Key())), key)
			Expect(as.run(ctx, "", "top", "pod", "-n", others, "idle")).To(ContainSubstring("idle"), key)
		}
	})

	It("is what kubectl top node shows, of a node's pods that are the tenant's", func(ctx SpecContext) {
		Eventually(kubectlOf(ctx, blue).run).WithContext(ctx).WithArguments("", "top", "node").Should(MatchRegexp(`worker\s+\d{1,2}m\s+\d%\s+\d+Mi`))
	})

	It("is what a HorizontalPodAutoscaler scales by", func(ctx SpecContext) {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "busy"}}
		Eventually(read(red, hpa)).WithContext(ctx).WithTimeout(2 * soon).Should(And(
			HaveField("Status.CurrentMetrics", ContainElement(HaveField("Resource.Current.AverageUtilization", HaveValue(BeNumerically(">", 0))))),
			HaveField("Status.DesiredReplicas", BeEquivalentTo(2))))
	})

	It("leaves namespaces to be deleted, in the tenant and in the super cluster", func(ctx SpecContext) {
		gone := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newNamespace(ctx, red)}}
		Expect(red.Client.Delete(ctx, gone)).To(Succeed())
		Eventually(get).WithContext(ctx).WithArguments(red, gone).Should(beNotFound)
		copied := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: red.Super(gone.Name)}}
		Eventually(func(ctx context.Context) error {
			return super.Client.Get(ctx, client.ObjectKeyFromObject(copied), copied)
		}).WithContext(ctx).Should(beNotFound)
	})
})

// busy is a deployment of pods that use ten times what they ask for.
func busy(ns, name string) *appsv1.Deployment {
	template := pod(ns, name, busybox, "sh", "-c", "while true; do :; done")
	template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")},
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
}

// scaled is an autoscaler of a deployment, up to two pods.
func scaled(ns, name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MaxReplicas:    2,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(100)),
				}},
			}},
		},
	}
}
