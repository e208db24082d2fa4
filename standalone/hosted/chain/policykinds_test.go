package chain_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKindsOfParameters: a user who may read the parameters of a policy may
// create it; permission in another tenant is none.
func TestKindsOfParameters(t *testing.T) {
	g := NewWithT(t)
	red, blue, _ := newClusters(t)
	group := admissionregistrationv1.GroupName
	red.allow(t, "policies", joe, rule("create", group, "validatingadmissionpolicies"), rule("get", "", "configmaps"))
	blue.allow(t, "policies", joe, rule("create", group, "validatingadmissionpolicies"), rule("get", "", "secrets"))
	create := func(in *cluster, name string, kind admissionregistrationv1.ParamKind) error {
		policies := in.client(in.certificate(t, "joe")).AdmissionregistrationV1().ValidatingAdmissionPolicies()
		_, err := policies.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				ParamKind: &kind, MatchConstraints: ofConfigMaps(),
				Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
			},
		}, metav1.CreateOptions{})
		return err
	}
	configMaps := admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	g.Eventually(func() error { return create(red, "x", configMaps) }, later).Should(Succeed())
	for _, kind := range []admissionregistrationv1.ParamKind{
		{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "example.com/v1", Kind: "Widget"}, {APIVersion: "v1", Kind: "Secret"},
	} {
		g.Expect(create(red, "y", kind)).To(MatchError(ContainSubstring("must have")), kind.Kind)
	}
	g.Eventually(func() error {
		return create(blue, "x", admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"})
	}, later).Should(Succeed())
	g.Expect(create(blue, "y", configMaps)).To(MatchError(ContainSubstring("must have")))
}
