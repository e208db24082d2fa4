package resources

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ingressClassAnnotation named the class of an Ingress before the field
// existed. Controllers still read it (Kubernetes documentation: Ingress,
// deprecated annotation).
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// ingressKind is the name of the kind.
const ingressKind = "Ingress"

// Ingress is synced down with the certificates that it names, and its addresses
// are synced up. The class has to be offered to the tenant, and the hosts have
// to be allowed.
func Ingress() kinds.Flow {
	return kinds.Down[*networkingv1.Ingress]{
		Name:       ingressKind,
		Object:     &networkingv1.Ingress{},
		List:       &networkingv1.IngressList{},
		Summary:    "down, if its class is offered; its addresses up",
		Optional:   true,
		Desired:    desiredIngress,
		Merge:      mergeIngress,
		References: ingressReferences,
		Claims:     ingressHosting.claims,
		Status: func(_ kinds.View, tenant, super *networkingv1.Ingress) {
			tenant.Status = *super.Status.DeepCopy()
		},
		Same: func(a, b *networkingv1.Ingress) bool { return semanticEqual(a.Status, b.Status) },
	}
}

func desiredIngress(v kinds.View, tenant *networkingv1.Ingress) (*networkingv1.Ingress, error) {
	if err := checkIngressClass(v, tenant); err != nil {
		return nil, err
	}
	if err := ingressHosting.check(v, tenant); err != nil {
		return nil, err
	}
	return &networkingv1.Ingress{Spec: *tenant.Spec.DeepCopy()}, nil
}

// checkIngressClass returns why no controller of the super cluster may serve an
// ingress: a class that is not offered, or none. To a copy without a class, the
// super cluster's admission would add its default class, offered or not, and
// controllers that serve ingresses without a class, or with an empty
// annotation, would accept it. If the default class is offered to the tenant,
// its own apiserver adds it.
func checkIngressClass(v kinds.View, tenant *networkingv1.Ingress) error {
	const field = "spec.ingressClassName"
	class, named := ptr.Deref(tenant.Spec.IngressClassName, ""), tenant.Spec.IngressClassName != nil
	old, annotated := tenant.Annotations[ingressClassAnnotation]
	switch {
	case (named || !annotated) && !v.Offers("IngressClass", class):
		return notOffered(field, "ingressclasses", class)
	case annotated && !v.Offers("IngressClass", old):
		return notOffered("the annotation "+ingressClassAnnotation, "ingressclasses", old)
	}
	return nil
}

func mergeIngress(super, desired *networkingv1.Ingress) { super.Spec = *desired.Spec.DeepCopy() }

// ingressReferences returns the Secrets with certificates, and the backends.
// They are not required: without its certificate, an ingress uses another one
// or none.
func ingressReferences(ingress *networkingv1.Ingress) []kinds.Reference {
	var refs references
	for _, tls := range ingress.Spec.TLS {
		refs.add("Secret", tls.SecretName)
	}
	refs.addBackend(ingress.Spec.DefaultBackend)
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			refs.addBackend(&rule.HTTP.Paths[i].Backend)
		}
	}
	return refs
}

func (r *references) addBackend(backend *networkingv1.IngressBackend) {
	switch {
	case backend == nil:
	case backend.Service != nil:
		r.add(serviceKind, backend.Service.Name)
	case backend.Resource != nil:
		r.add(kindName(backend.Resource.APIGroup, backend.Resource.Kind), backend.Resource.Name)
	}
}
