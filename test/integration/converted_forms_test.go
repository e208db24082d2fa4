package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// autoscalers is the resource that autoscaling/v1 and autoscaling/v2 serve.
const autoscalers = "horizontalpodautoscalers"

var (
	firstAutoscalers, secondAutoscalers = autoscalingv1.SchemeGroupVersion, autoscalingv2.SchemeGroupVersion
	coreEvents, ownEvents               = corev1.SchemeGroupVersion, eventsv1.SchemeGroupVersion
)

// inForm returns rules for requests of one form.
func inForm(form schema.GroupVersion, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	rules := kit.ForRequests(form.Group, resource, operations...)
	rules[0].APIVersions = []string{form.Version}
	return rules
}

func autoscalerV1(name string) *autoscalingv1.HorizontalPodAutoscaler {
	return &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"scaled": "true"}},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    3, TargetCPUUtilizationPercentage: new(int32(50)),
		},
	}
}

// autoscalerV2 also has what autoscaling/v1 has no field for.
func autoscalerV2(name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"scaled": "true"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MaxReplicas:    3,
			Metrics:        []autoscalingv2.MetricSpec{resourceMetric(corev1.ResourceCPU, 50), resourceMetric(corev1.ResourceMemory, 60)},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(7))},
			},
		},
	}
}

func resourceMetric(name corev1.ResourceName, utilization int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: name, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization},
	}}
}

func coreEvent(name string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web"}, Message: "of shop", Reason: "Tested",
	}
}

func ownEvent(name string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, EventTime: metav1.MicroTime{Time: time.Now()},
		ReportingController: "example.com/test", ReportingInstance: "test", Action: "Testing", Reason: "Tested", Type: "Normal",
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web"}, Note: "of shop",
	}
}

// asSent is what webhooks see of an object.
func asSent(raw []byte) *unstructured.Unstructured {
	GinkgoHelper()
	object := map[string]any{}
	Expect(json.Unmarshal(raw, &object)).To(Succeed())
	return &unstructured.Unstructured{Object: object}
}

var _ = Describe("The admission of a converted tenant, for objects in several forms", Ordered, ContinueOnFailure, func() {
	var (
		red     *local.Tenant
		webhook *kit.Webhook
	)

	BeforeAll(func(ctx SpecContext) {
		red = kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		Eventually(func() error { return red.Client.Create(ctx, namespaceOf("shop")) }).Should(Succeed())
		webhook = kit.StartWebhook(ctx, super, red, "shop", "webhook", respond)
	})

	BeforeEach(func() { webhook.Calls() })

	dryRun := func(ctx context.Context, object client.Object) error {
		return red.Client.Create(ctx, object, client.DryRunAll)
	}
	// effective waits until the webhooks that the tenant has created decide: those
	// created later decide about other objects. One of an earlier call may still
	// decide, and has another name.
	markers := 0
	effective := func(ctx context.Context) {
		GinkgoHelper()
		markers++
		name := fmt.Sprintf("marker-%d", markers)
		for object, marker := range map[client.Object]client.Object{
			configMap("shop", "marker", nil): kit.Mutating(name, webhook.At("/deny"), kit.ForRequests("", "configmaps", onCreate)),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "marker"}}: kit.Validating(
				name, webhook.At("/deny"), kit.ForRequests("", "secrets", onCreate)),
		} {
			kit.Create(ctx, red.Client, marker)
			Eventually(func() error { return dryRun(ctx, object.DeepCopyObject().(client.Object)) }).
				Should(MatchError(ContainSubstring(fmt.Sprintf("webhook %q denied the request", name+".example.com"))))
			Expect(red.Client.Delete(ctx, marker)).To(Succeed())
		}
		webhook.Calls()
	}
	// calls returns those for requests that no controller has sent.
	calls := func() []admissionv1.AdmissionRequest {
		return slices.DeleteFunc(webhook.Calls(), func(call admissionv1.AdmissionRequest) bool {
			return strings.HasPrefix(call.UserInfo.Username, "system:")
		})
	}
	one := func() admissionv1.AdmissionRequest {
		GinkgoHelper()
		got := calls()
		Expect(got).To(HaveLen(1))
		return got[0]
	}
	// last is for a write of a stored object: apiservers call webhooks again when a
	// controller has written between.
	last := func() admissionv1.AdmissionRequest {
		GinkgoHelper()
		got := calls()
		Expect(got).NotTo(BeEmpty())
		return got[len(got)-1]
	}

	DescribeTable("calls a webhook that names one for requests of the other",
		func(ctx SpecContext, named schema.GroupVersion, resource string, object func(name string) client.Object, fields ...string) {
			kit.Temporarily(ctx, red.Client, kit.Validating("deny", webhook.At("/deny"), inForm(named, resource, onCreate)))
			effective(ctx)
			sent := object("denied")
			requested := must(red.Client.GroupVersionKindFor(sent))
			Expect(dryRun(ctx, sent)).To(MatchError(`admission webhook "deny.example.com" denied the request: this webhook denies all`))
			call := one()
			Expect(call.Kind).To(Equal(metav1.GroupVersionKind(named.WithKind(requested.Kind))))
			Expect(call.Resource).To(Equal(metav1.GroupVersionResource(named.WithResource(resource))))
			Expect(*call.RequestKind).To(Equal(metav1.GroupVersionKind(requested)))
			Expect(*call.RequestResource).To(Equal(metav1.GroupVersionResource(requested.GroupVersion().WithResource(resource))))
			seen := asSent(call.Object.Raw)
			Expect(seen.GroupVersionKind()).To(Equal(named.WithKind(requested.Kind)))
			_, has, err := unstructured.NestedFieldNoCopy(seen.Object, fields...)
			Expect(has, err).To(BeTrue(), "%s", call.Object.Raw)
			Expect(must(json.Marshal(call))).NotTo(Or(ContainSubstring(red.Key()), ContainSubstring("tenancy.x-k8s.io"), ContainSubstring("inOtherForm")))
		},
		Entry("autoscaling/v1, autoscaling/v2", firstAutoscalers, autoscalers,
			func(name string) client.Object { return autoscalerV2(name) }, "spec", "targetCPUUtilizationPercentage"),
		Entry("autoscaling/v2, autoscaling/v1", secondAutoscalers, autoscalers,
			func(name string) client.Object { return autoscalerV1(name) }, "spec", "metrics"),
		Entry("v1, events.k8s.io/v1", coreEvents, "events", func(name string) client.Object { return ownEvent(name) }, "involvedObject", "name"),
		Entry("events.k8s.io/v1, v1", ownEvents, "events", func(name string) client.Object { return coreEvent(name) }, "regarding", "name"),
	)

	It("shows updates, deletions and subresources in the form that a webhook names", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, autoscalerV2("changed"))
		rules := append(inForm(firstAutoscalers, autoscalers, onUpdate, onDelete), inForm(firstAutoscalers, autoscalers+"/status", onUpdate)...)
		kit.Temporarily(ctx, red.Client, kit.Validating("see", webhook.At("/allow"), rules))
		effective(ctx)
		object := autoscalerV2("changed")
		kit.Edit(ctx, red.Client, object, func(o *autoscalingv2.HorizontalPodAutoscaler) { o.Spec.MaxReplicas = 4 })
		update := last()
		Expect(asSent(update.Object.Raw).Object["spec"]).To(HaveKeyWithValue("maxReplicas", BeNumerically("==", 4)))
		Expect(asSent(update.OldObject.Raw).Object["spec"]).To(
			And(HaveKeyWithValue("maxReplicas", BeNumerically("==", 3)), HaveKeyWithValue("targetCPUUtilizationPercentage", BeNumerically("==", 50))))
		Expect(red.Client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"status":{"desiredReplicas":2}}`)))).To(Succeed())
		status := last()
		Expect(status.SubResource).To(Equal("status"))
		Expect(asSent(status.Object.Raw).GetAPIVersion()).To(Equal("autoscaling/v1"))
		Expect(red.Client.Delete(ctx, object)).To(Succeed())
		deletion := last()
		Expect(deletion.Object.Raw).To(BeEmpty())
		Expect(asSent(deletion.OldObject.Raw).GetAPIVersion()).To(Equal("autoscaling/v1"))
	})

	It("applies the patch of a webhook in the form that it names", func(ctx SpecContext) {
		at := webhook.At(patching(`[{"op":"replace","path":"/spec/targetCPUUtilizationPercentage","value":77},` +
			`{"op":"add","path":"/metadata/labels/mutated","value":"true"}]`))
		kit.Temporarily(ctx, red.Client, kit.Mutating("mutate", at, inForm(firstAutoscalers, autoscalers, onCreate)))
		// It is for objects with the label, after others that are not called.
		kit.Temporarily(ctx, red.Client, kit.Validating("later", webhook.At("/allow"), inForm(secondAutoscalers, autoscalers, onCreate),
			func(w *admissionregistrationv1.ValidatingWebhook) {
				w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"mutated": "true"}}
			}))
		effective(ctx)
		object := autoscalerV2("mutated")
		kit.Create(ctx, red.Client, object)
		Expect(object.Labels).To(Equal(map[string]string{"scaled": "true", "mutated": "true"}))
		Expect(object.Annotations).To(BeEmpty(), "those of autoscaling/v1 are fields again")
		Expect(object.Spec.Metrics).To(ConsistOf(resourceMetric(corev1.ResourceCPU, 77), resourceMetric(corev1.ResourceMemory, 60)))
		Expect(*object.Spec.Behavior.ScaleDown.StabilizationWindowSeconds).To(Equal(int32(7)))
		Expect(webhook.Calls()).To(HaveExactElements(HaveField("Kind.Version", "v1"), HaveField("Kind.Version", "v2")))
		inSuper := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: red.Super("shop"), Name: "mutated"}}
		Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
		Expect(inSuper.Labels).To(HaveKeyWithValue("tenancy.x-k8s.io/converted", red.Key()))
	})

	It("calls webhooks of several forms once, by the selectors of each", func(ctx SpecContext) {
		scaled := func(w *admissionregistrationv1.MutatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"scaled": "true"}}
		}
		for name, rules := range map[string][]admissionregistrationv1.RuleWithOperations{
			"a-first":  inForm(firstAutoscalers, autoscalers, onCreate),
			"b-second": inForm(secondAutoscalers, autoscalers, onCreate),
			"c-any":    kit.ForRequests("*", autoscalers, onCreate),
			"d-both":   append(inForm(firstAutoscalers, autoscalers, onCreate), inForm(secondAutoscalers, autoscalers, onCreate)...),
		} {
			kit.Temporarily(ctx, red.Client, kit.Mutating(name, webhook.At(patching("[]")), rules, scaled))
		}
		effective(ctx)
		Expect(dryRun(ctx, autoscalerV2("several"))).To(Succeed())
		Expect(webhook.Calls()).To(ConsistOf(
			HaveField("Kind.Version", "v1"), HaveField("Kind.Version", "v2"), HaveField("Kind.Version", "v2"), HaveField("Kind.Version", "v2")))
		Expect(dryRun(ctx, autoscalerV1("several"))).To(Succeed())
		Expect(webhook.Calls()).To(ConsistOf(
			HaveField("Kind.Version", "v1"), HaveField("Kind.Version", "v2"), HaveField("Kind.Version", "v1"), HaveField("Kind.Version", "v1")))
	})

	It("does not call a webhook of another form that is Exact", func(ctx SpecContext) {
		kit.Temporarily(ctx, red.Client, kit.Validating("exact", webhook.At("/deny"), inForm(firstAutoscalers, autoscalers, onCreate),
			func(w *admissionregistrationv1.ValidatingWebhook) { w.MatchPolicy = new(admissionregistrationv1.Exact) }))
		effective(ctx)
		Expect(dryRun(ctx, autoscalerV2("exact"))).To(Succeed())
		Expect(webhook.Calls()).To(BeEmpty())
		Expect(dryRun(ctx, autoscalerV1("exact"))).NotTo(Succeed())
		Expect(one().Kind.Version).To(Equal("v1"))
	})

	It("evaluates the conditions of a webhook in the form that it names", func(ctx SpecContext) {
		kit.Temporarily(ctx, red.Client, kit.Validating("condition", webhook.At("/deny"), inForm(firstAutoscalers, autoscalers, onCreate),
			func(w *admissionregistrationv1.ValidatingWebhook) {
				w.MatchConditions = []admissionregistrationv1.MatchCondition{
					{Name: "field", Expression: "object.spec.targetCPUUtilizationPercentage == 50"},
					{Name: "form", Expression: "request.kind.version == 'v1' && object.apiVersion == 'autoscaling/v1'"},
				}
			}))
		effective(ctx)
		Expect(dryRun(ctx, autoscalerV2("condition"))).To(MatchError(ContainSubstring("this webhook denies all")))
		other := autoscalerV2("condition")
		other.Spec.Metrics[0].Resource.Target.AverageUtilization = new(int32(51))
		Expect(dryRun(ctx, other)).To(Succeed())
	})

	It("evaluates policies in the form that they name", func(ctx SpecContext) {
		policy := policyFor("form", "object.spec.targetCPUUtilizationPercentage <= 80")
		policy.Spec.MatchConstraints.ResourceRules = inNamedForm(firstAutoscalers)
		kit.Temporarily(ctx, red.Client, policy)
		kit.Temporarily(ctx, red.Client, denyBy("form"))
		const apply = "Object{spec: Object.spec{targetCPUUtilizationPercentage: object.spec.targetCPUUtilizationPercentage + 10}}"
		kit.Temporarily(ctx, red.Client, &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "form"},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				MatchConstraints:   &admissionregistrationv1.MatchResources{ResourceRules: inNamedForm(firstAutoscalers)},
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
					ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: apply},
				}},
			},
		})
		kit.Temporarily(ctx, red.Client, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "form"}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "form"},
		})
		Eventually(func(g Gomega) {
			object := autoscalerV2("policy")
			g.Expect(dryRun(ctx, object)).To(Succeed())
			g.Expect(object.Spec.Metrics).To(ContainElement(resourceMetric(corev1.ResourceCPU, 60)))
		}).Should(Succeed())
		over := autoscalerV2("policy")
		over.Spec.Metrics[0].Resource.Target.AverageUtilization = new(int32(75))
		Eventually(func() error { return dryRun(ctx, over.DeepCopy()) }).
			Should(MatchError(ContainSubstring("failed expression: object.spec.targetCPUUtilizationPercentage <= 80")))
	})

	It("does not evaluate policies for what they exclude in another form", func(ctx SpecContext) {
		policy := policyFor("excluding", "false")
		policy.Spec.MatchConstraints.ResourceRules = inNamedForm(secondAutoscalers)
		policy.Spec.MatchConstraints.ExcludeResourceRules = inNamedForm(firstAutoscalers)
		kit.Temporarily(ctx, red.Client, policy)
		kit.Temporarily(ctx, red.Client, denyBy("excluding"))
		all := policyFor("all", "false")
		all.Spec.MatchConstraints.ResourceRules = namedRules("", "secrets")
		kit.Temporarily(ctx, red.Client, all)
		kit.Temporarily(ctx, red.Client, denyBy("all"))
		Eventually(func() error {
			return dryRun(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "policies"}})
		}).ShouldNot(Succeed())
		Expect(dryRun(ctx, autoscalerV2("excluded"))).To(Succeed())
	})
})

func inNamedForm(form schema.GroupVersion) []admissionregistrationv1.NamedRuleWithOperations {
	return []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: inForm(form, autoscalers, onCreate, onUpdate)[0]}}
}
