package chain_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ofConfigMaps are the objects that the policies of the tests match.
func ofConfigMaps() *admissionregistrationv1.MatchResources {
	rule := configMaps()[0]
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}}}
}

// forbid creates a policy that allows the ConfigMaps for which an expression is
// true.
func forbid(t *testing.T, client kubernetes.Interface, expression string, params *admissionregistrationv1.ParamKind, of *admissionregistrationv1.ParamRef) {
	t.Helper()
	g := NewWithT(t)
	policies := client.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind: params, MatchConstraints: ofConfigMaps(),
			Validations: []admissionregistrationv1.Validation{{Expression: expression, Message: "by policy"}},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "x", ParamRef: of,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestPolicies: a policy applies to its tenant, as soon as its creation has
// succeeded. It asks the RBAC of its tenant without the context of a request.
func TestPolicies(t *testing.T) {
	g := NewWithT(t)
	red, blue := redAndBlue(t)
	may := `authorizer.group("").resource("secrets").namespace("team").check("get").allowed()`
	forbid(t, red, may+` && object.metadata.name.startsWith("red-")`, nil, nil)
	g.Expect(createConfigMap(t, red, "x")).To(MatchError(ContainSubstring("by policy")))
	g.Expect(createConfigMap(t, red, "red-x")).To(Succeed())
	g.Expect(createConfigMap(t, blue, "x")).To(Succeed())

	forbid(t, blue, may+` && object.metadata.name.startsWith("blue-")`, nil, nil)
	g.Expect(createConfigMap(t, blue, "red-x")).To(MatchError(ContainSubstring("by policy")))
	g.Expect(createConfigMap(t, blue, "blue-x")).To(Succeed())
	g.Expect(createConfigMap(t, red, "red-y")).To(Succeed())
}

// TestPolicyParameters: the parameters of a policy are those of its tenant, and
// follow changes.
func TestPolicyParameters(t *testing.T) {
	g := NewWithT(t)
	red, blue := redAndBlue(t)
	for prefix, client := range map[string]kubernetes.Interface{"red-": red, "blue-": blue} {
		createNamespace(t, client, "params")
		_, err := client.CoreV1().ConfigMaps("params").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"prefix": prefix},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		forbid(t, client, `object.metadata.name.startsWith(params.data.prefix)`,
			&admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			&admissionregistrationv1.ParamRef{Name: "x", Namespace: "params", ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)})
	}
	g.Expect(createConfigMap(t, red, "red-x")).To(Succeed())
	g.Expect(createConfigMap(t, red, "blue-x")).To(MatchError(ContainSubstring("by policy")))
	g.Expect(createConfigMap(t, blue, "blue-x")).To(Succeed())
	g.Expect(createConfigMap(t, blue, "red-x")).To(MatchError(ContainSubstring("by policy")))
}

// TestPolicyParametersOfCustomResources: the parameters can be of a kind that the
// tenant has defined, of equal names in each tenant.
func TestPolicyParametersOfCustomResources(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	clients := map[string]kubernetes.Interface{}
	for _, name := range []string{"red", "blue"} {
		tenant, client := addTeam(t, c, name)
		clients[name] = client
		define(t, tenant, definitionOf("size", "string"))
		_, err := widgetsOf(t, tenant).Create(t.Context(), widget("x", map[string]any{"size": name + "-"}), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		forbid(t, client, `object.metadata.name.startsWith(params.spec.size)`,
			&admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "Widget"},
			&admissionregistrationv1.ParamRef{Name: "x", Namespace: "team", ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)})
	}
	g.Eventually(func() error { return createConfigMap(t, clients["red"], "red-x") }, later).Should(Succeed())
	g.Expect(createConfigMap(t, clients["red"], "blue-x")).To(MatchError(ContainSubstring("by policy")))
	g.Eventually(func() error { return createConfigMap(t, clients["blue"], "blue-x") }, later).Should(Succeed())
	g.Expect(createConfigMap(t, clients["blue"], "red-x")).To(MatchError(ContainSubstring("by policy")))
}

// TestPolicyThatFails: an expression that exceeds its budget denies requests of
// its tenant only.
func TestPolicyThatFails(t *testing.T) {
	g := NewWithT(t)
	red, blue := redAndBlue(t)
	loop := `variables.none == null`
	for i := range 9 {
		loop = fmt.Sprintf(`[0,1,2,3,4,5,6,7,8,9].all(x%d, %s)`, i, loop)
	}
	policies := red.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: ofConfigMaps(),
			Variables:        []admissionregistrationv1.Variable{{Name: "none", Expression: "null"}},
			Validations:      []admissionregistrationv1.Validation{{Expression: loop}},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "x", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(createConfigMap(t, red, "x")).To(MatchError(ContainSubstring("actual cost limit exceeded")))
	g.Expect(createConfigMap(t, blue, "x")).To(Succeed())
}

// TestMutatingPolicies sets a label in one tenant.
func TestMutatingPolicies(t *testing.T) {
	g := NewWithT(t)
	red, blue := redAndBlue(t)
	policies := red.AdmissionregistrationV1()
	_, err := policies.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: ofConfigMaps(), ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: `Object{metadata: Object.metadata{labels: {"of": "red"}}}`,
				},
			}},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = policies.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "x"},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	// Type converters are created in the background.
	g.Eventually(func(g Gomega) {
		created, err := red.CoreV1().ConfigMaps("team").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(created.Labels).To(HaveKeyWithValue("of", "red"))
	}, later).Should(Succeed())
	g.Expect(labelOf(t, blue, "team", "x")).To(BeEmpty())
}
