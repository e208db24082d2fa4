package resources

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

// TestIngressClass checks that the parameters are not synced up.
func TestIngressClass(t *testing.T) {
	isDefault := map[string]string{"ingressclass.kubernetes.io/is-default-class": "true"}
	want := &networkingv1.IngressClass{
		ObjectMeta: classMeta(isDefault),
		Spec:       networkingv1.IngressClassSpec{Controller: "text-2"},
	}
	testClass(t, IngressClass(), superClass(&networkingv1.IngressClass{}, isDefault), want,
		func(c *networkingv1.IngressClass) { c.Spec.Controller = "example.com/other" },
	)
}
