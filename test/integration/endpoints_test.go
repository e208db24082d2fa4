package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// endpoints are deprecated in favor of EndpointSlices, and still in use.
type endpoints = corev1.Endpoints //nolint:staticcheck // see above

// byHand returns Endpoints with these addresses.
func byHand(ns, name string, addresses ...string) *endpoints {
	e := &endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	setAddresses(e, addresses...)
	return e
}

func setAddresses(e *endpoints, addresses ...string) {
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "http", Port: 80}}} //nolint:staticcheck // see above
	for _, ip := range addresses {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: ip})
	}
	e.Subsets = append(e.Subsets[:0], subset)
}

// addressesOf returns the addresses of Endpoints.
func addressesOf(e *endpoints) []string {
	var all []string
	for _, s := range e.Subsets {
		for _, a := range s.Addresses {
			all = append(all, a.IP)
		}
	}
	return all
}

// slicesOf lists the EndpointSlices of a Service.
func slicesOf(ctx context.Context, c client.Client, ns, service string) func() ([]discoveryv1.EndpointSlice, error) {
	return func() ([]discoveryv1.EndpointSlice, error) {
		list := &discoveryv1.EndpointSliceList{}
		err := c.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{discoveryv1.LabelServiceName: service})
		return list.Items, err
	}
}

// reached returns the addresses in slices.
func reached(slices []discoveryv1.EndpointSlice) []string {
	var all []string
	for _, s := range slices {
		for _, e := range s.Endpoints {
			all = append(all, e.Addresses...)
		}
	}
	return all
}

var _ = Describe("Endpoints", Ordered, func() {
	const ns = "endpoints"
	var (
		red    *local.Tenant
		manual = service(ns, "manual")
		own    = byHand(ns, "manual", "192.0.2.1")
	)

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		manual.Spec.Selector = nil
		kit.Create(ctx, red.Client, kit.Namespace(ns), manual, own)
	})

	It("of the tenant are synced down, and the super cluster mirrors them to slices, once", func(ctx SpecContext) {
		mirrored := slicesOf(ctx, super.Client, red.Super(ns), "manual")
		Eventually(mirrored).Should(WithTransform(reached, ConsistOf("192.0.2.1")))
		settle(ctx)
		uids := func(slices []discoveryv1.EndpointSlice) (all []types.UID) {
			for _, s := range slices {
				all = append(all, s.UID)
			}
			return all
		}
		was := uids(must(mirrored()))
		Expect(was).To(HaveLen(1), "the tenant's own mirrored slice is not synced down too")
		Consistently(mirrored).Should(WithTransform(uids, Equal(was)))
	})

	It("are updated, and are corrected", func(ctx SpecContext) {
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, own))
		kit.Edit(ctx, red.Client, own, func(e *endpoints) { setAddresses(e, "192.0.2.2", "192.0.2.3") })
		Eventually(down).Should(WithTransform(addressesOf, ConsistOf("192.0.2.2", "192.0.2.3")))
		kit.Edit(ctx, super.Client, kit.SuperOf(red, own), func(e *endpoints) { setAddresses(e, "192.0.2.66") })
		Eventually(down).Should(WithTransform(addressesOf, ConsistOf("192.0.2.2", "192.0.2.3")))
		Expect(super.Client.Delete(ctx, kit.SuperOf(red, own))).To(Succeed())
		Eventually(down).Should(WithTransform(addressesOf, ConsistOf("192.0.2.2", "192.0.2.3")))
		Eventually(slicesOf(ctx, super.Client, red.Super(ns), "manual")).Should(WithTransform(reached, ConsistOf("192.0.2.2", "192.0.2.3")))

		Expect(red.Client.Delete(ctx, own)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, own))
		Eventually(slicesOf(ctx, super.Client, red.Super(ns), "manual")).Should(BeEmpty())
	})

	It("of a Service with a selector are created by the super cluster itself", func(ctx SpecContext) {
		svc := service(ns, "web")
		kit.Create(ctx, red.Client, svc, kit.Pod(ns, "web"))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web"))
		Eventually(kit.Read(ctx, red.Client, byHand(ns, "web"))).Should(WithTransform(addressesOf, HaveLen(1)))
		Eventually(slicesOf(ctx, super.Client, red.Super(ns), "web")).Should(HaveExactElements(
			HaveField("Labels", HaveKeyWithValue(discoveryv1.LabelManagedBy, "endpointslice-controller.k8s.io"))))
		settle(ctx)
		Expect(slicesOf(ctx, super.Client, red.Super(ns), "web")()).To(HaveLen(1))
		Expect(must(kit.Read(ctx, super.Client, kit.SuperOf(red, byHand(ns, "web")))()).Labels).
			To(HaveKeyWithValue("endpoints.kubernetes.io/managed-by", "endpoint-controller"))
	})

	It("can be written when the Service has no selector any more", func(ctx SpecContext) {
		kit.Edit(ctx, red.Client, service(ns, "web"), func(s *corev1.Service) { s.Spec.Selector = nil })
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, service(ns, "web")))).Should(HaveField("Spec.Selector", BeEmpty()))
		Expect(red.Client.Delete(ctx, byHand(ns, "web"))).To(Succeed())
		kit.Create(ctx, red.Client, byHand(ns, "web", "192.0.2.7"))
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, byHand(ns, "web")))
		Eventually(down).Should(WithTransform(addressesOf, ConsistOf("192.0.2.7")))
		kit.Edit(ctx, red.Client, byHand(ns, "web"), func(e *endpoints) { setAddresses(e, "192.0.2.8") })
		Eventually(down).Should(WithTransform(addressesOf, ConsistOf("192.0.2.8")))
	})

	It("of the tenant's apiserver are synced down, since pods connect to it through them", func(ctx SpecContext) {
		apiserver := byHand("default", "kubernetes", "192.0.2.1")
		kit.Create(ctx, red.Client, apiserver, kit.EndpointSlice("default", "kubernetes", "kubernetes", "192.0.2.1"))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, apiserver))).Should(WithTransform(addressesOf, ConsistOf("192.0.2.1")))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.EndpointSlice("default", "kubernetes", "kubernetes", "192.0.2.1")))
	})

	It("with a node's own addresses are rejected by the tenant's apiserver", func(ctx SpecContext) {
		for _, ip := range []string{"127.0.0.1", "169.254.169.254"} {
			Expect(red.Client.Create(ctx, byHand(ns, "bad", ip))).To(MatchError(apierrors.IsInvalid, "invalid"))
			Expect(red.Client.Create(ctx, kit.EndpointSlice(ns, "bad", "manual", ip))).To(MatchError(apierrors.IsInvalid, "invalid"))
		}
	})
})

var _ = Describe("An EndpointSlice", Ordered, func() {
	const ns = "slices"
	var (
		red *local.Tenant
		own = kit.EndpointSlice(ns, "manual-1", "manual", "192.0.2.1")
	)

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		manual := service(ns, "manual")
		manual.Spec.Selector = nil
		kit.Create(ctx, red.Client, kit.Namespace(ns), manual, kit.Pod(ns, "behind"))
		own.Labels[discoveryv1.LabelManagedBy] = "mesh.example.com"
		own.Endpoints[0].NodeName = new("node-0")
		own.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "behind", UID: "1"}
		kit.Create(ctx, red.Client, own)
	})

	It("of the tenant is synced down, with its target pod", func(ctx SpecContext) {
		down := kit.SuperOf(red, own)
		kit.ShouldExist(ctx, super.Client, down)
		Expect(down.Labels).To(HaveKeyWithValue(discoveryv1.LabelServiceName, "manual"))
		Expect(down.Endpoints).To(HaveExactElements(And(
			HaveField("Addresses", ConsistOf("192.0.2.1")), HaveField("NodeName", new("node-0")),
			HaveField("TargetRef", &corev1.ObjectReference{Kind: "Pod", Namespace: red.Super(ns), Name: "behind"}))))
	})

	It("is updated, and is corrected", func(ctx SpecContext) {
		down := kit.Read(ctx, super.Client, kit.SuperOf(red, own))
		to := func(ip string) func(*discoveryv1.EndpointSlice) {
			return func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = []string{ip} }
		}
		reaches := func(s *discoveryv1.EndpointSlice) []string { return reached([]discoveryv1.EndpointSlice{*s}) }
		kit.Edit(ctx, red.Client, own, to("192.0.2.2"))
		Eventually(down).Should(WithTransform(reaches, ConsistOf("192.0.2.2")))
		kit.Edit(ctx, super.Client, kit.SuperOf(red, own), to("192.0.2.66"))
		Eventually(down).Should(WithTransform(reaches, ConsistOf("192.0.2.2")))
		Expect(super.Client.Delete(ctx, kit.SuperOf(red, own))).To(Succeed())
		Eventually(down).Should(WithTransform(reaches, ConsistOf("192.0.2.2")))
	})

	It("that a controller adopts stays, and its copy is deleted", func(ctx SpecContext) {
		kit.Edit(ctx, red.Client, own, func(s *discoveryv1.EndpointSlice) {
			s.Labels[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
			s.Labels[discoveryv1.LabelServiceName] = "none"
		})
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, own))
	})

	It("of another address family replaces the first", func(ctx SpecContext) {
		v4 := kit.EndpointSlice(ns, "either", "manual", "192.0.2.1")
		kit.Create(ctx, red.Client, v4)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, v4))
		Expect(red.Client.Delete(ctx, v4)).To(Succeed())
		v6 := kit.EndpointSlice(ns, "either", "manual", "fd00::1")
		v6.AddressType = discoveryv1.AddressTypeIPv6
		kit.Create(ctx, red.Client, v6)
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, v6))).Should(HaveField("AddressType", discoveryv1.AddressTypeIPv6))
	})
})
