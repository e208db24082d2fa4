package integration

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// policyFor returns a policy for Deployments that denies what does not
// meet an expression.
func policyFor(name, expression string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: namedRules("apps", "deployments")},
			Validations:      []admissionregistrationv1.Validation{{Expression: expression}},
		},
	}
}

// namedRules names the version, since types are not checked by rules for all.
func namedRules(group, resource string) []admissionregistrationv1.NamedRuleWithOperations {
	rule := kit.ForRequests(group, resource, onCreate, onUpdate)[0]
	rule.APIVersions = []string{"v1"}
	return []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}}
}

func denyBy(policy string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

func deploymentOf(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: kit.Pod("", "").Spec},
		},
	}
}

var _ = Describe("The admission policies of a converted tenant", Ordered, ContinueOnFailure, func() {
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red, blue = kit.Tenant(ctx, super, kit.VirtualCluster(converted)), kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(func() error { return t.Client.Create(ctx, namespaceOf("shop")) }).Should(Succeed())
		}
	})

	// refused waits until red cannot create an object, with an error: it is another one
	// until the parameters of a policy have been read.
	refused := func(ctx context.Context, object client.Object, matches OmegaMatcher) {
		GinkgoHelper()
		Eventually(func() error {
			return red.Client.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		}).WithContext(ctx).Should(matches)
	}

	It("validate what the tenant creates", func(ctx SpecContext) {
		policy := policyFor("replicas", "variables.replicas > 1 && object.metadata.namespace == 'shop' && namespaceObject.metadata.name == 'shop'")
		policy.Spec.Variables = []admissionregistrationv1.Variable{{Name: "replicas", Expression: "object.spec.replicas"}}
		policy.Spec.Validations[0].MessageExpression = "'wants ' + string(variables.replicas) + ' of ' + request.userInfo.username"
		began := time.Now()
		kit.Temporarily(ctx, red.Client, policy)
		kit.Temporarily(ctx, red.Client, denyBy("replicas"))
		refused(ctx, deploymentOf("one", 1), MatchError(HavePrefix(
			`deployments.apps "one" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: wants 1 of `)))
		AddReportEntry("effective after", time.Since(began).String())
		Expect(red.Client.Create(ctx, deploymentOf("two", 2), client.DryRunAll)).To(Succeed())
		Expect(blue.Client.Create(ctx, deploymentOf("one", 1), client.DryRunAll)).To(Succeed())
	})

	It("have parameters of the tenant's own", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, configMap("shop", "limits", map[string]string{"most": "3"}))
		policy := policyFor("limited", "object.spec.replicas <= int(params.data.most)")
		policy.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
		kit.Temporarily(ctx, red.Client, policy)
		binding := denyBy("limited")
		binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{
			Name: "limits", Namespace: "shop", ParameterNotFoundAction: new(admissionregistrationv1.DenyAction),
		}
		kit.Temporarily(ctx, red.Client, binding)
		refused(ctx, deploymentOf("many", 4), MatchError(ContainSubstring("failed expression: object.spec.replicas <= int(params.data.most)")))
		Eventually(func() error { return red.Client.Create(ctx, deploymentOf("many", 3), client.DryRunAll) }).Should(Succeed())
	})

	It("mutate what the tenant creates", func(ctx SpecContext) {
		const apply = "Object{spec: Object.spec{replicas: 2, template: Object.spec.template{metadata: Object.spec.template.metadata{labels: {'a': 'b'}}}}}"
		policy := &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "mutate"},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				MatchConstraints:   &admissionregistrationv1.MatchResources{ResourceRules: namedRules("apps", "deployments")},
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				Mutations: []admissionregistrationv1.Mutation{
					{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: apply}},
					{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{
						Expression: "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'c': 'd'}}]",
					}},
				},
			},
		}
		kit.Temporarily(ctx, red.Client, policy)
		kit.Temporarily(ctx, red.Client, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "mutate"}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "mutate"},
		})
		Eventually(func(g Gomega) {
			deployment := deploymentOf("mutated", 1)
			g.Expect(red.Client.Create(ctx, deployment, client.DryRunAll)).To(Succeed())
			g.Expect(*deployment.Spec.Replicas).To(Equal(int32(2)))
			g.Expect(deployment.Annotations).To(HaveKeyWithValue("c", "d"))
			g.Expect(deployment.Spec.Template.Labels).To(And(HaveKeyWithValue("a", "b"), HaveKeyWithValue("app", "mutated")))
		}).Should(Succeed())
		untouched := deploymentOf("mutated", 1)
		Expect(blue.Client.Create(ctx, untouched, client.DryRunAll)).To(Succeed())
		Expect(*untouched.Spec.Replicas).To(Equal(int32(1)))
	})

	It("are read, patched, listed and deleted as in a cluster", func(ctx SpecContext) {
		policy := policyFor("verbs", "true")
		policy.Labels = map[string]string{"set": "verbs"}
		kit.Create(ctx, red.Client, policy)
		Expect(*policy.Spec.FailurePolicy).To(Equal(admissionregistrationv1.Fail))
		Expect(*policy.Spec.MatchConstraints.MatchPolicy).To(Equal(admissionregistrationv1.Equivalent))
		Expect(*policy.Spec.MatchConstraints.ResourceRules[0].Scope).To(Equal(admissionregistrationv1.AllScopes))
		Expect(red.Client.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"patched":"true"}}}`)))).To(Succeed())
		Expect(red.Client.Patch(ctx, policy, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"failurePolicy":"Ignore"}}`)))).To(Succeed())
		Expect(policy.Annotations).To(HaveKeyWithValue("patched", "true"))
		status := []byte(`{"status":{"conditions":[{"type":"StatusPatched","status":"True","reason":"by spec","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		Expect(red.Client.Status().Patch(ctx, policy, client.RawPatch(types.MergePatchType, status))).To(Succeed())
		Expect(policy.Status.Conditions).To(HaveLen(1))
		Eventually(func() error { // the gateway writes the status, too
			Expect(kit.Get(ctx, red.Client, policy)).To(Succeed())
			policy.Status.Conditions[0].Message = "updated"
			return red.Client.Status().Update(ctx, policy)
		}).Should(Succeed())
		Expect(kit.Get(ctx, red.Client, policy)).To(Succeed())
		Expect(policy.Status.Conditions[0].Message).To(Equal("updated"))
		wrong := policyFor("wrong", "object.spec.replicas +")
		Expect(red.Client.Create(ctx, wrong)).To(And(MatchError(apierrors.IsInvalid, "invalid"), MatchError(ContainSubstring("compilation failed"))))
		Expect(red.Client.Create(ctx, policyFor("wrong", ""))).To(MatchError(apierrors.IsInvalid, "invalid"))
		var list admissionregistrationv1.ValidatingAdmissionPolicyList
		Expect(red.Client.List(ctx, &list, client.MatchingLabels{"set": "verbs"})).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(red.Client.DeleteAllOf(ctx, policy, client.MatchingLabels{"set": "verbs"})).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, policy)
	})

	Describe("have a status", func() {
		// checked returns a policy after it is created, or changed, and checked.
		checked := func(ctx context.Context, t *local.Tenant, policy *admissionregistrationv1.ValidatingAdmissionPolicy) *admissionregistrationv1.ValidatingAdmissionPolicy {
			GinkgoHelper()
			if policy.UID == "" {
				kit.Temporarily(ctx, t.Client, policy)
			}
			Eventually(kit.Read(ctx, t.Client, policy)).WithTimeout(2 * kit.Soon).Should(
				HaveField("Status.ObservedGeneration", BeNumerically(">=", policy.Generation)))
			Expect(kit.Get(ctx, t.Client, policy)).To(Succeed())
			return policy
		}
		misspelled := HaveField("Status.TypeChecking.ExpressionWarnings", ConsistOf(And(
			HaveField("FieldRef", "spec.validations[0].expression"), HaveField("Warning", ContainSubstring("undefined field")))))
		right := HaveField("Status.TypeChecking.ExpressionWarnings", BeEmpty())

		It("with the warnings of a hosted tenant about native kinds", func(ctx SpecContext) {
			hosted := tenant(ctx)
			for name, expression := range map[string]string{
				"right": "object.spec.replicas > 1", "misspelled": "object.spec.replica > 1", "mistyped": "variables.replicas == 'many'",
				"deep": "object.spec.template.spec.containers.all(c, c.img != '')", "messages": "request.operation == 'CREATE' && namespaceObject.metadata.name != ''",
			} {
				policy := policyFor(name, expression)
				policy.Spec.Variables = []admissionregistrationv1.Variable{{Name: "replicas", Expression: "object.spec.replicas"}}
				policy.Spec.Validations[0].MessageExpression = "'not ' + string(object.spec.replica)"
				theirs, ours := checked(ctx, hosted, policy.DeepCopy()), checked(ctx, red, policy)
				Expect(ours.Status).To(BeComparableTo(theirs.Status), name)
				Expect(ours.Status.TypeChecking.ExpressionWarnings).NotTo(BeEmpty(), name)
			}
		})

		It("when the tenant changes them", func(ctx SpecContext) {
			policy := checked(ctx, red, policyFor("changed", "object.spec.replica > 1"))
			Expect(policy).To(misspelled)
			Expect(policy.ManagedFields).To(ContainElement(And(
				HaveField("Manager", "validatingadmissionpolicy-status"), HaveField("Subresource", "status"))))
			kit.Edit(ctx, red.Client, policy, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
				p.Spec.Validations[0].Expression = "object.spec.replicas > 1"
			})
			Expect(policy.Generation).To(Equal(int64(2)))
			Expect(checked(ctx, red, policy)).To(right)
		})

		It("by the tenant's own CRD, and not by that of another", func(ctx SpecContext) {
			for t, field := range map[*local.Tenant]string{red: "color", blue: "size"} {
				kit.Temporarily(ctx, t.Client, definition(gears, func(d *apiextensionsv1.CustomResourceDefinition) {
					d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "string"}},
					}
				}))
				// The schemas of a CRD are served a moment after its objects.
				schemas := discovery.NewDiscoveryClientForConfigOrDie(t.Config).OpenAPIV3()
				Eventually(func() (string, error) {
					paths, err := schemas.Paths()
					if err != nil || paths["apis/"+platform+"/v1"] == nil {
						return "", err
					}
					schema, err := paths["apis/"+platform+"/v1"].Schema("application/json")
					return string(schema), err
				}).WithTimeout(2 * kit.Soon).Should(ContainSubstring(`"` + field + `"`))
			}
			ofGears := func(expression string) *admissionregistrationv1.ValidatingAdmissionPolicy {
				policy := policyFor("gears", expression)
				policy.Spec.MatchConstraints.ResourceRules = namedRules(platform, gears)
				return policy
			}
			Expect(checked(ctx, red, ofGears("object.spec.color == 'red'"))).To(right)
			Expect(checked(ctx, blue, ofGears("object.spec.color == 'red'"))).To(And(misspelled,
				HaveField("Status.TypeChecking.ExpressionWarnings", ContainElement(HaveField("Warning", And(
					HavePrefix(platform+"/v1, Kind=Gear"), Not(ContainSubstring("vc-"))))))))
		})
	})
})
