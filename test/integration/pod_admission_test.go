package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A change of a copy by the super cluster's admission", func() {
	const ns, gate = "admitted", "example.com/quota"

	It("stays, and the syncer does not fight it", func(ctx SpecContext) {
		red := tenant(ctx)
		policy := &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "quota-" + red.VC.Name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				FailurePolicy:      new(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{names.VCName: red.VC.Name}},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
					}}},
				},
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
					ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{
						metadata: Object.metadata{labels: {"audit": "yes"}},
						spec: Object.spec{
							schedulingGates: [Object.spec.schedulingGates{name: "` + gate + `"}],
							activeDeadlineSeconds: 3600,
							containers: [
								Object.spec.containers{name: "main", resources: Object.spec.containers.resources{requests: {"cpu": "10m"}}},
								Object.spec.containers{name: "injected", image: "example/proxy:1"}
							]
						}
					}`},
				}},
			},
		}
		binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
		}
		kit.Create(ctx, super.Client, policy, binding)
		DeferCleanup(func(ctx SpecContext) {
			Expect(super.Client.Delete(ctx, binding)).To(Succeed())
			Expect(super.Client.Delete(ctx, policy)).To(Succeed())
		})
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		Eventually(func(g Gomega) { // until the policy is in effect
			probe := kit.Pod(red.Super(ns), "probe")
			probe.Spec.ServiceAccountName = "default"
			g.Expect(super.Client.Create(ctx, probe)).To(Succeed())
			g.Expect(super.Client.Delete(ctx, probe)).To(Succeed())
			g.Expect(probe.Labels).To(HaveKey("audit"))
		}).WithContext(ctx).Should(Succeed())

		p := kit.Pod(ns, "web", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/own"}}
			p.Spec.Containers[0].Resources.Requests = kit.Amounts("cpu", "2")
		})
		kit.Create(ctx, red.Client, p)
		copied := kit.SuperOf(red, p)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Spec.SchedulingGates).To(HaveLen(2))
		kit.Edit(ctx, red.Client, p, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Spec.SchedulingGates", ConsistOf(HaveField("Name", gate))))
		settle(ctx)
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied.Labels).To(HaveKeyWithValue("audit", "yes"))
		Expect(copied.Spec.ActiveDeadlineSeconds).To(HaveValue(BeEquivalentTo(3600)))
		Expect(copied.Spec.SchedulingGates).To(HaveLen(1))
		Expect(copied.Spec.Containers).To(HaveLen(2))

		kit.Edit(ctx, super.Client, copied, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
		Eventually(kit.Read(ctx, red.Client, p)).Should(HaveField("Status.Phase", corev1.PodRunning))
		Expect(must(kit.Read(ctx, red.Client, p)()).Status.ContainerStatuses).To(ConsistOf(HaveField("Name", "main")))
		Expect(kit.Rejections(ctx, red, p)()).To(BeEmpty())
	})
})
