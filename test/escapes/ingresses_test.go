package escapes

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// sharedIngress is a class of ingresses that tenants are offered.
const sharedIngress = "shared"

// offerIngressClass offers a class of ingresses to all tenants, until the specs end.
func offerIngressClass(ctx context.Context) {
	GinkgoHelper()
	makeIngressClass(ctx, metav1.ObjectMeta{Name: sharedIngress, Labels: map[string]string{names.Public: "true"}})
}

// makeIngressClass makes a class of ingresses in the super cluster, until the
// specs end.
func makeIngressClass(ctx context.Context, meta metav1.ObjectMeta) {
	GinkgoHelper()
	class := &networkingv1.IngressClass{ObjectMeta: meta, Spec: networkingv1.IngressClassSpec{Controller: "example.com/" + meta.Name}}
	kit.Create(ctx, super.Client, class)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
}

// ingress returns an ingress that leads hosts to a Service.
func ingress(ns, name string, hosts ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	i.Spec.IngressClassName = new(sharedIngress)
	for _, host := range hosts {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: serviceBackend(),
			}}}},
		})
	}
	return i
}

func serviceBackend() networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
	}}
}

var _ = Describe("The hosts of an Ingress", Ordered, func() {
	const ns, inUse = "front", "in use by another Ingress"
	var alice, mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		offerIngressClass(ctx)
		alice, mallory = tenant(ctx), tenant(ctx)
		kit.Create(ctx, alice.Client, kit.Namespace(ns), ingress(ns, "shop", "shop.example.com"), ingress(ns, "all", "*.alice.example.com"))
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(alice, ingress(ns, "shop")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(alice, ingress(ns, "all")))
		own := ingress("default", "console", "console.example.com")
		kit.Create(ctx, super.Client, own)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, own))).To(Succeed()) })
	})

	// rejected is an attack by a new ingress.
	rejected := func(text, source, why string, i *networkingv1.Ingress) {
		attack(text, source, func(ctx SpecContext) {
			kit.Create(ctx, mallory.Client, i)
			shouldBeRejected(ctx, mallory, i, why)
			Expect(kit.Rejections(ctx, mallory, i)()).NotTo(ContainElement(ContainSubstring(alice.VC.Name)), "another tenant is named")
		})
	}
	const source = "peers: vcluster and Capsule leave hosts to admission policies; ingress-nginx #8020 and the like"
	rejected("a host of another tenant", source, inUse, ingress(ns, "host", "free.example.org", "shop.example.com"))
	rejected("a host of the platform", source, inUse, ingress(ns, "platform", "console.example.com"))
	rejected("a wildcard over another tenant's host", source, inUse, ingress(ns, "above", "*.example.com"))
	rejected("a host below another tenant's wildcard", source, inUse, ingress(ns, "below", "login.alice.example.com"))
	rejected("a rule for all hosts", source, "requests for all hosts", ingress(ns, "rule", ""))
	everything := ingress(ns, "default")
	everything.Spec.DefaultBackend = new(serviceBackend())
	rejected("a default backend for all hosts", source, "requests for all hosts", everything)
	certificate := ingress(ns, "certificate", "mallory.example.org")
	certificate.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.example.com"}, SecretName: "mine"}}
	rejected("a certificate for another tenant's host", "review: spec.tls names hosts of its own", inUse, certificate)

	attack("a host of another tenant, by an older ingress that changes", "review: older is not first", func(ctx SpecContext) {
		i := ingress(ns, "patient", "patient.example.org")
		kit.Create(ctx, mallory.Client, i)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, i))
		kit.Create(ctx, alice.Client, ingress(ns, "late", "late.example.com"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(alice, ingress(ns, "late")))
		kit.Edit(ctx, mallory.Client, i, func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "late.example.com" })
		Eventually(kit.Rejections(ctx, mallory, i)).Should(ContainElement(ContainSubstring(inUse)))
		Consistently(hostsOf(ctx, kit.SuperOf(mallory, i))).Should(ConsistOf("patient.example.org"))
	})

	attack("a host that the platform takes back", "review: first come, except for the platform", func(ctx SpecContext) {
		i := ingress(ns, "squatter", "status.example.com")
		kit.Create(ctx, mallory.Client, i)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, i))
		own := ingress("default", "status", "status.example.com")
		kit.Create(ctx, super.Client, own)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, own)).To(Succeed()) })
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(mallory, i)).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		shouldBeRejected(ctx, mallory, i, inUse)
	})

	attack("a host that the policy does not give", "review: spec.policy.ingressHosts", func(ctx SpecContext) {
		bob := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{IngressHosts: []string{"*.bob.example.com"}}
		})
		given, other := ingress(ns, "given", "www.bob.example.com"), ingress(ns, "other", "bob.example.com.evil.example.org")
		kit.Create(ctx, bob.Client, kit.Namespace(ns), given, other)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(bob, given))
		shouldBeRejected(ctx, bob, other, "is not allowed; choose one of: *.bob.example.com")
	})
})

var _ = Describe("The class of an Ingress", Ordered, func() {
	const (
		ns, platform = "classless", "platform-default"
		source       = "Kubernetes documentation: Ingress, default IngressClass"
		none         = "which names no class"
	)
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		offerIngressClass(ctx)
		makeIngressClass(ctx, metav1.ObjectMeta{
			Name: platform, Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"},
		})
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		shown := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: sharedIngress}}
		kit.ShouldExist(ctx, mallory.Client, shown)
	})

	classless := func(name string) *networkingv1.Ingress {
		i := ingress(ns, name, name+".example.org")
		i.Spec.IngressClassName = nil
		return i
	}

	attack("the platform's default controller, by an Ingress without a class", source, func(ctx SpecContext) {
		i := classless("default")
		kit.Create(ctx, mallory.Client, i)
		shouldBeRejected(ctx, mallory, i, none)
	})

	attack("controllers that serve Ingresses without a class, by an empty annotation", "ingress-nginx: an empty annotation is any class",
		func(ctx SpecContext) {
			i := classless("empty")
			i.Annotations = map[string]string{"kubernetes.io/ingress.class": ""}
			kit.Create(ctx, mallory.Client, i)
			shouldBeRejected(ctx, mallory, i, none)
		})

	attack("controllers that serve Ingresses without a class, by a class that is removed", "review: a copy that loses its class",
		func(ctx SpecContext) {
			i := ingress(ns, "removed", "removed.example.org")
			kit.Create(ctx, mallory.Client, i)
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, i))
			kit.Edit(ctx, mallory.Client, i, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = nil })
			Eventually(kit.Rejections(ctx, mallory, i)).Should(ContainElement(ContainSubstring(none)))
			Consistently(kit.Read(ctx, super.Client, kit.SuperOf(mallory, i))).
				Should(HaveField("Spec.IngressClassName", HaveValue(Equal(sharedIngress))))
		})
})

// hostsOf returns a function that reads the hosts of the rules of an ingress of
// the super cluster.
func hostsOf(ctx context.Context, i *networkingv1.Ingress) func() ([]string, error) {
	return func() ([]string, error) {
		now := i.DeepCopy()
		err := kit.Get(ctx, super.Client, now)
		var hosts []string
		for _, rule := range now.Spec.Rules {
			hosts = append(hosts, rule.Host)
		}
		return hosts, err
	}
}

var _ = Describe("Names that lead elsewhere", Ordered, func() {
	const ns = "names"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		offerIngressClass(ctx)
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a backend that is a name of the platform's network", "ingress-nginx and Contour (GHSA-5ph6-qq5x-7jwc): ExternalName", func(ctx SpecContext) {
		web := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "metadata.google.internal"},
		}
		front := ingress(ns, "front", strings.ToLower(mallory.VC.Name)+".example.org")
		kit.Create(ctx, mallory.Client, web, front)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, front))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, web))
	})

	attack("a Service that becomes a name", "review: the neighbour of ExternalName", func(ctx SpecContext) {
		svc := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "turncoat"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		kit.Create(ctx, mallory.Client, svc)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, svc))
		kit.Edit(ctx, mallory.Client, svc, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "kubernetes.default.svc"
		})
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(mallory, svc)).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, svc))
	})

	attack("endpoints that are names", "review: EndpointSlices of FQDN are ExternalNames of another kind", func(ctx SpecContext) {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: ns, Name: "names", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeFQDN,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"metadata.google.internal"}}},
		}
		last := ingress(ns, "last", "last."+strings.ToLower(mallory.VC.Name)+".example.org")
		kit.Create(ctx, mallory.Client, slice, last)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, last))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, slice))
	})
})
