package resources

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ingressClassAnnotation named the class of an ingress before there was a field for it. Controllers still read it (Kubernetes
// documentation: Ingress, deprecated annotation).
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// ingressKind is the name of the kind.
const ingressKind = "Ingress"

// Ingress flows down with the certificates that it names, its addresses up. The class has to be one that the tenant is offered, and the
// hosts the tenant's to serve. Of an ingress that names no class, the super cluster's default chooses.
func Ingress() kinds.Flow {
	return kinds.Down[*networkingv1.Ingress]{
		Name:       ingressKind,
		Object:     &networkingv1.Ingress{},
		List:       &networkingv1.IngressList{},
		Desired:    desiredIngress,
		Merge:      mergeIngress,
		References: ingressReferences,
		Claims:     ingressClaims,
		Status: func(_ kinds.View, tenant, super *networkingv1.Ingress) {
			tenant.Status = *super.Status.DeepCopy()
		},
		Same: func(a, b *networkingv1.Ingress) bool { return semanticEqual(a.Status, b.Status) },
	}
}

func desiredIngress(v kinds.View, tenant *networkingv1.Ingress) (*networkingv1.Ingress, error) {
	class := ptr.Deref(tenant.Spec.IngressClassName, "")
	if err := checkIngressClass(v, "spec.ingressClassName", class); err != nil {
		return nil, err
	}
	if err := checkIngressClass(v, "the annotation "+ingressClassAnnotation, tenant.Annotations[ingressClassAnnotation]); err != nil {
		return nil, err
	}
	if err := checkHosts(v, tenant); err != nil {
		return nil, err
	}
	super := &networkingv1.Ingress{Spec: *tenant.Spec.DeepCopy()}
	if class != "" {
		super.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{names.Values: class}}
	}
	return super, nil
}

func checkIngressClass(v kinds.View, field, class string) error {
	if class == "" || v.Offers("IngressClass", class) {
		return nil
	}
	return notOffered(field, "ingressclasses", class)
}

// mergeIngress takes everything but the class that the super cluster chose where the tenant names none.
func mergeIngress(super, desired *networkingv1.Ingress) {
	was := super.Spec.IngressClassName
	_, named := super.Annotations[names.Values]
	super.Spec = *desired.Spec.DeepCopy()
	if super.Spec.IngressClassName == nil && desired.Annotations[ingressClassAnnotation] == "" && !named {
		super.Spec.IngressClassName = was
	}
	delete(super.Annotations, names.Values)
}

// ingressReferences are the secrets with the certificates, and the backends. Without a certificate an ingress does its work with another
// one, or without.
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
