package resources

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// IngressClass is synced up to the tenants whose Ingresses may use it. Its
// parameters are objects of the super cluster, and not synced up.
func IngressClass() kinds.Flow {
	return class("IngressClass", &networkingv1.IngressClass{}, &networkingv1.IngressClassList{},
		func(to, from *networkingv1.IngressClass) {
			to.Spec = networkingv1.IngressClassSpec{Controller: from.Spec.Controller}
		},
		func(a, b *networkingv1.IngressClass) bool { return a.Spec.Controller != b.Spec.Controller },
		networkingv1.AnnotationIsDefaultIngressClass,
	)
}
