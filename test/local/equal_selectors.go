package local

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// with adapts a function that changes objects of one type to one that returns a
// changed copy of any object.
func with[T client.Object](change func(translate.Tenant, T)) func(translate.Tenant, client.Object) client.Object {
	return func(who translate.Tenant, obj client.Object) client.Object {
		super := obj.DeepCopyObject().(T)
		change(who, super)
		return super
	}
}

func serviceSelector(who translate.Tenant, s *corev1.Service) {
	s.Spec.Selector = who.PodLabels(s.Spec.Selector)
}

func policySelector(who translate.Tenant, p *networkingv1.NetworkPolicy) {
	p.Spec.PodSelector = *who.PodSelector(&p.Spec.PodSelector)
}

func budgetSelector(who translate.Tenant, b *policyv1.PodDisruptionBudget) {
	b.Spec.Selector = who.PodSelector(b.Spec.Selector)
}
