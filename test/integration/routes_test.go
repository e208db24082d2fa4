package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// routeKinds are the kinds of routes that are synced.
var routeKinds = []string{"HTTPRoute", "GRPCRoute", "TLSRoute"}

// hostsByClaim is the policy of a tenant that may have the hosts that no other
// has.
func hostsByClaim(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Policy.IngressHosts = nil }

// routedIngress returns an Ingress for a host.
func routedIngress(ns, name, host string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{}
	i.Namespace, i.Name = ns, name
	i.Spec.IngressClassName = new("routes-public")
	i.Spec.Rules = []networkingv1.IngressRule{{Host: host}}
	return i
}

// ownHosts changes the hosts of a route.
func ownHosts(hosts ...string) func(*unstructured.Unstructured) {
	return func(route *unstructured.Unstructured) {
		Expect(unstructured.SetNestedStringSlice(route.Object, hosts, "spec", "hostnames")).To(Succeed())
	}
}

// writeRouteStatus writes the status of a copy, as the controller of the
// Gateway would.
func writeRouteStatus(ctx context.Context, route *unstructured.Unstructured, message string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		if err := kit.Get(ctx, super.Client, route); err != nil {
			return err
		}
		route.Object["status"] = map[string]any{"parents": []any{map[string]any{
			"parentRef":      map[string]any{"namespace": kit.Edge, "name": kit.PublicGateway},
			"controllerName": "example.com/gateway",
			"conditions": []any{map[string]any{
				"type": "Accepted", "status": "True", "reason": "Accepted", "message": message,
				"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": route.GetGeneration(),
			}},
		}}}
		return super.Client.Status().Update(ctx, route)
	}).WithContext(ctx).Should(Succeed())
}

// parents returns the parents of a route's status.
func parents(route *unstructured.Unstructured) []any {
	found, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	return found
}

var _ = Describe("Routes", Ordered, func() {
	const ns = "routes"
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account, func(o *app.Options) { o.Patrol = briefly })
		kit.InstallGateways(ctx, super)
		offerPublicly(ctx, ingressClass("routes-public"))
		red, blue = tenant(ctx, kit.WithRoutes(routeKinds...), hostsByClaim), tenant(ctx, kit.WithRoutes("HTTPRoute"), hostsByClaim)
		for _, t := range []*local.Tenant{red, blue} {
			kit.Create(ctx, t.Client, kit.Namespace(ns), service(ns, "web"))
		}
		kit.ShouldExist(ctx, blue.Client, ingressClass("routes-public"))
	})

	for _, kind := range routeKinds {
		It("of kind "+kind+" are synced down with their Services, changed and deleted, and have a status", func(ctx SpecContext) {
			route := kit.Route(kind, ns, "shop", "shop.example.com")
			kit.CreateRoute(ctx, red, route)
			copied := kit.SuperOf(red, route)
			kit.ShouldExist(ctx, super.Client, copied)
			Expect(copied.GetAnnotations()).To(HaveKeyWithValue(names.UID, string(route.GetUID())))
			Expect(copied.Object["spec"]).To(Equal(route.Object["spec"]))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, service(ns, "web")))

			writeRouteStatus(ctx, copied, "attached to "+red.Super(ns))
			Eventually(kit.Read(ctx, red.Client, route)).Should(WithTransform(parents, ConsistOf(And(
				HaveKeyWithValue("parentRef", And(HaveKeyWithValue("namespace", kit.Edge), HaveKeyWithValue("name", kit.PublicGateway))),
				HaveKeyWithValue("controllerName", "example.com/gateway"),
				HaveKeyWithValue("conditions", ConsistOf(HaveKeyWithValue("message", "attached to "+ns)))))))

			kit.Edit(ctx, red.Client, route, ownHosts("market.example.com"))
			Eventually(kit.Read(ctx, super.Client, copied)).Should(field([]any{"market.example.com"}, "spec", "hostnames"))
			kit.Edit(ctx, super.Client, copied, ownHosts("stolen.example.com"))
			Eventually(kit.Read(ctx, super.Client, copied)).Should(field([]any{"market.example.com"}, "spec", "hostnames"))
			writeRouteStatus(ctx, copied, "restored")
			Expect(copied.GetGeneration()).To(BeNumerically(">", route.GetGeneration()))
			Eventually(kit.Read(ctx, red.Client, route)).Should(WithTransform(parents, ConsistOf(HaveKeyWithValue("conditions", ConsistOf(And(
				HaveKeyWithValue("message", "restored"), HaveKeyWithValue("observedGeneration", route.GetGeneration())))))))

			Expect(red.Client.Delete(ctx, route)).To(Succeed())
			kit.ShouldVanish(ctx, super.Client, copied)
		})
	}

	It("wait for a Gateway that is offered", func(ctx SpecContext) {
		route := kit.Route("HTTPRoute", ns, "early", "early.example.com")
		Expect(unstructured.SetNestedSlice(route.Object, []any{
			map[string]any{"namespace": kit.Edge, "name": kit.HiddenGateway},
		}, "spec", "parentRefs")).To(Succeed())
		kit.CreateRoute(ctx, red, route)
		Eventually(kit.Rejections(ctx, red, route)).Should(ContainElement(And(
			ContainSubstring(`the Gateway "edge/hidden", which the super cluster does not offer`), ContainSubstring("edge/public"))))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, route))

		hidden := kit.Gateway(kit.HiddenGateway)
		kit.Edit(ctx, super.Client, hidden, func(g *unstructured.Unstructured) { g.SetLabels(map[string]string{names.Public: "true"}) })
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, route))
		kit.Edit(ctx, super.Client, hidden, func(g *unstructured.Unstructured) { g.SetLabels(nil) })
		Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, route)).WithTimeout(2 * briefly).Should(Succeed())
	})

	It("share their hosts with the Ingresses and routes of others, until they are free", func(ctx SpecContext) {
		first := kit.Route("HTTPRoute", ns, "first", "first.example.com", "*.first.example.com")
		kit.CreateRoute(ctx, red, first)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, first))
		second := kit.Route("HTTPRoute", ns, "second", "first.example.com")
		kit.CreateRoute(ctx, blue, second)
		i := routedIngress(ns, "second", "a.first.example.com")
		kit.Create(ctx, blue.Client, i)
		const inUse = "in use by another Ingress or route"
		Eventually(kit.Rejections(ctx, blue, second)).Should(ContainElement(ContainSubstring(inUse)))
		Eventually(kit.Rejections(ctx, blue, i)).Should(ContainElement(ContainSubstring(inUse)))

		Expect(red.Client.Delete(ctx, first)).To(Succeed())
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(blue, second))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(blue, i))
		third := kit.Route("TLSRoute", ns, "third", "a.first.example.com")
		kit.CreateRoute(ctx, red, third)
		Eventually(kit.Rejections(ctx, red, third)).Should(ContainElement(ContainSubstring(inUse)))
	})

	It("that claim a host at the same time as another's Ingress or route: one keeps it", func(ctx SpecContext) {
		const rounds = 5
		var pairs [][2]client.Object
		for n := range rounds {
			name := fmt.Sprintf("race-%d", n)
			route, i := kit.Route("HTTPRoute", ns, name, name+".example.com"), routedIngress(ns, name, name+".example.com")
			other := kit.Route("HTTPRoute", ns, "route-"+name, "*."+name+".example.com")
			same := kit.Route("HTTPRoute", ns, "route-"+name, "a."+name+".example.com")
			creations := []func() error{
				func() error { return red.Client.Create(ctx, route) }, func() error { return blue.Client.Create(ctx, i) },
				func() error { return red.Client.Create(ctx, other) }, func() error { return blue.Client.Create(ctx, same) },
			}
			Expect(kit.AtOnce(len(creations), func(i int) error { return creations[i]() })).To(HaveEach(BeNil()))
			pairs = append(pairs,
				[2]client.Object{kit.SuperOf(red, route), kit.SuperOf(blue, i)}, [2]client.Object{kit.SuperOf(red, other), kit.SuperOf(blue, same)})
		}
		kept := func(g Gomega) {
			for _, pair := range pairs {
				errs := []error{kit.Get(ctx, super.Client, pair[0]), kit.Get(ctx, super.Client, pair[1])}
				g.Expect(errs).To(ConsistOf(BeNil(), MatchError(apierrors.IsNotFound, "not found")), pair[0].GetName())
			}
		}
		// Both may have a copy for a moment, of which one is evicted.
		Eventually(func(g Gomega) {
			g.Consistently(kept).WithContext(ctx).WithTimeout(3 * briefly).Should(Succeed())
		}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	})
})
