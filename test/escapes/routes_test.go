package escapes

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// webService returns the Service to which the routes of specs lead.
func webService(ns string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// attachedTo attaches a route to another parent.
func attachedTo(parent map[string]any) func(*unstructured.Unstructured) {
	return func(route *unstructured.Unstructured) {
		Expect(unstructured.SetNestedSlice(route.Object, []any{parent}, "spec", "parentRefs")).To(Succeed())
	}
}

// ruled gives a route another rule.
func ruled(rule map[string]any) func(*unstructured.Unstructured) {
	return func(route *unstructured.Unstructured) {
		Expect(unstructured.SetNestedSlice(route.Object, []any{rule}, "spec", "rules")).To(Succeed())
	}
}

// backends returns a rule with a backend.
func backends(ref map[string]any) map[string]any { return map[string]any{"backendRefs": []any{ref}} }

// filtered returns a rule with a filter.
func filtered(filter map[string]any) map[string]any {
	return map[string]any{"filters": []any{filter}, "backendRefs": []any{map[string]any{"name": "web", "port": int64(80)}}}
}

var _ = Describe("Routes", Ordered, func() {
	const (
		ns, inUse = "routes", "in use by another Ingress or route"
		review    = "review: the references of a route, by their fields"
		cross     = "Gateway API, GEP-709: references across namespaces"
	)
	var alice, mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		kit.InstallGateways(ctx, super)
		offerIngressClass(ctx)
		routes := kit.WithRoutes("HTTPRoute", "TLSRoute")
		alice, mallory = tenant(ctx, routes), tenant(ctx, routes)
		for _, t := range []*local.Tenant{alice, mallory} {
			kit.Create(ctx, t.Client, kit.Namespace(ns), webService(ns))
		}
		kit.Create(ctx, alice.Client, ingress(ns, "ingress", "ingress.alice.example.com"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(alice, ingress(ns, "ingress")))
		route := kit.Route("HTTPRoute", ns, "route", "route.alice.example.com", "*.below.alice.example.com")
		kit.CreateRoute(ctx, alice, route)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(alice, route))
		own := kit.Route("HTTPRoute", "default", "console", "console.routes.example.com")
		kit.Create(ctx, super.Client, own)
	})

	// rejected is an attack by a new route.
	rejected := func(text, source, why string, route *unstructured.Unstructured, change ...func(*unstructured.Unstructured)) {
		attack(text, source, func(ctx SpecContext) {
			for _, f := range change {
				f(route)
			}
			kit.CreateRoute(ctx, mallory, route)
			shouldBeRejected(ctx, mallory, route, why)
			Expect(kit.Rejections(ctx, mallory, route)()).NotTo(ContainElement(ContainSubstring(alice.VC.Name)), "another tenant is named")
		})
	}
	const peers = "peers: vcluster and Capsule leave hosts to admission policies"
	http := func(name string, hosts ...string) *unstructured.Unstructured {
		return kit.Route("HTTPRoute", ns, name, hosts...)
	}
	rejected("the host of another tenant's Ingress, by an HTTPRoute", peers, inUse, http("ingress", "ingress.alice.example.com"))
	rejected("the host of another tenant's HTTPRoute, by a TLSRoute", peers, inUse, kit.Route("TLSRoute", ns, "tls", "route.alice.example.com"))
	rejected("a wildcard over another tenant's route", peers, inUse, http("above", "*.alice.example.com"))
	rejected("a host below the wildcard of another tenant's route", peers, inUse, http("below", "login.below.alice.example.com"))
	rejected("the host of a route of the platform", peers, inUse, http("platform", "console.routes.example.com"))
	rejected("a route for all hosts of a listener", "Gateway API: no hostnames are all of the listener", "requests for all hosts", http("all"))

	free := func(name string) *unstructured.Unstructured { return http(name, name+".mallory.example.com") }
	rejected("a Gateway that is not offered", review, "does not offer", free("hidden"),
		attachedTo(map[string]any{"namespace": kit.Edge, "name": kit.HiddenGateway}))
	rejected("a Gateway by a name in the tenant's own namespace", review, "does not offer", free("nameless"),
		attachedTo(map[string]any{"name": kit.PublicGateway}))
	rejected("the mesh of a Service, as a parent", "Gateway API, GEP-1426: Services are parents, too", "is of kind Service", free("mesh"),
		attachedTo(map[string]any{"group": "", "kind": "Service", "namespace": kit.Edge, "name": "web"}))
	rejected("a Service of another namespace, as a backend", cross, "of the route's own namespace", free("elsewhere"),
		ruled(backends(map[string]any{"name": "kubernetes", "namespace": "default", "port": int64(443)})))
	rejected("a Service of another namespace, as the mirror of requests", cross, "of the route's own namespace", free("mirror"),
		ruled(filtered(map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{
			"backendRef": map[string]any{"name": "kubernetes", "namespace": "default", "port": int64(443)},
		}})))
	rejected("an object that a controller trusts, as an extension", review, "extensionRef is not synced", free("extension"),
		ruled(filtered(map[string]any{"type": "ExtensionRef", "extensionRef": map[string]any{
			"group": "example.com", "kind": "Snippet", "name": "any",
		}})))

	attack("a Service of another tenant, as a backend of a route", cross, func(ctx SpecContext) {
		route := free("alices")
		ruled(backends(map[string]any{"name": "web", "namespace": alice.Super(ns), "port": int64(80)}))(route)
		kit.CreateRoute(ctx, mallory, route)
		shouldBeRejected(ctx, mallory, route, "of the route's own namespace")
	})

	attack("a Gateway in another tenant's namespace", review, func(ctx SpecContext) {
		gateway := kit.Gateway("alices")
		gateway.SetNamespace(alice.Super(ns))
		kit.Create(ctx, super.Client, gateway)
		route := free("gateway")
		attachedTo(map[string]any{"namespace": alice.Super(ns), "name": "alices"})(route)
		kit.CreateRoute(ctx, mallory, route)
		shouldBeRejected(ctx, mallory, route, "does not offer")
	})

	attack("a Service of the platform's in the tenant's namespace, as a backend", "review: a copy refers to copies only", func(ctx SpecContext) {
		own := webService(mallory.Super(ns))
		own.Name = "platform"
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(ns)))
		kit.Create(ctx, super.Client, own)
		route := free("foreign")
		ruled(backends(map[string]any{"name": "platform", "port": int64(80)}))(route)
		kit.CreateRoute(ctx, mallory, route)
		shouldBeRejected(ctx, mallory, route, "belongs to an object that is not this cluster's")
	})

	attack("the host of another tenant's route, by an older Ingress", "review: older is not first", func(ctx SpecContext) {
		i := ingress(ns, "patient", "patient.mallory.example.com")
		kit.Create(ctx, mallory.Client, i)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, i))
		late := http("late", "late.alice.example.com")
		kit.CreateRoute(ctx, alice, late)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(alice, late))
		kit.Edit(ctx, mallory.Client, i, func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "late.alice.example.com" })
		Eventually(kit.Rejections(ctx, mallory, i)).Should(ContainElement(ContainSubstring(inUse)))
		Consistently(hostsOf(ctx, kit.SuperOf(mallory, i))).Should(ConsistOf("patient.mallory.example.com"))

		By("restarting the syncer, which may engage the attacker first")
		Expect(syncer.Stop()).To(Succeed())
		startSyncer()
		probe := ingress(ns, "probe", "probe.mallory.example.com")
		kit.Create(ctx, mallory.Client, probe)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, probe))
		Consistently(hostsOf(ctx, kit.SuperOf(mallory, i))).WithTimeout(2 * patrol).Should(ConsistOf("patient.mallory.example.com"))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(alice, late))).To(Succeed())
	})

	attack("a field that only the tenant's own definition of routes has", review, func(ctx SpecContext) {
		eve := tenant(ctx)
		kit.Create(ctx, eve.Client, kit.Namespace(ns))
		defineAnything(ctx, eve)
		kit.Edit(ctx, super.Client, eve.VC, kit.WithRoutes("HTTPRoute"))
		route := http("unknown", "unknown.eve.example.com")
		Expect(unstructured.SetNestedField(route.Object, "All", "spec", "useDefaultGateways")).To(Succeed())
		kit.CreateRoute(ctx, eve, route)
		shouldBeRejected(ctx, eve, route, "spec.useDefaultGateways is not synced")
	})

	attack("a Gateway of the tenant's own, where an admin has named the kind", review, func(ctx SpecContext) {
		kit.Edit(ctx, super.Client, mallory.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync.CustomResources = append(vc.Spec.Sync.CustomResources, tenancyv1alpha1.CustomResourceSync{
				Group: kit.GatewayGroup, Version: "v1", Resource: "gateways", Direction: tenancyv1alpha1.SyncDown,
			})
		})
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "vc-syncer-gateways", Labels: map[string]string{rbac.AggregateToSyncer: "true"}},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{kit.GatewayGroup}, Resources: []string{"gateways"}, Verbs: []string{"*"}}},
		}
		kit.Create(ctx, super.Client, role)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, role)).To(Succeed()) })
		gateway := kit.Gateway("mine")
		gateway.SetNamespace(ns)
		kit.CreateRoute(ctx, mallory, gateway)
		shouldBeRejected(ctx, mallory, gateway, "only HTTPRoutes, GRPCRoutes and TLSRoutes")
	})
})

// defineAnything creates a tenant's own definition of HTTPRoutes, which has any
// field.
func defineAnything(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	shipped := &apiextensionsv1.CustomResourceDefinition{}
	Expect(super.Client.Get(ctx, client.ObjectKey{Name: "httproutes." + kit.GatewayGroup}, shipped)).To(Succeed())
	own := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: shipped.Name, Annotations: shipped.Annotations}, Spec: *shipped.Spec.DeepCopy(),
	}
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	for i := range own.Spec.Versions {
		own.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
		}
	}
	kit.Create(ctx, t.Client, own)
}
