package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// asking returns a request for one device of a class.
func asking(class string) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "device", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
	}}}}
}

func deviceClaim(ns, name, class string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: asking(class)}
}

// using adds a claim to a pod.
func using(claim corev1.PodResourceClaim) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		claim.Name = "device"
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{claim}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
}

func deviceClass(name string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "net.example.com"`}}},
		Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
			Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "net.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{"password":"the driver's"}`)}},
		}}},
	}}
}

// devices returns a slice of devices on the nodes of the super cluster.
func devices(names ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "net-devices"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "net.example.com", AllNodes: new(true),
			Pool: resourcev1.ResourcePool{Name: "shelf", Generation: 1, ResourceSliceCount: 1},
		},
	}
	for _, name := range names {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: name})
	}
	return s
}

var _ = Describe("A ResourceClaim", Ordered, func() {
	const ns = "devices"
	var (
		red    *local.Tenant
		shared = deviceClaim(ns, "shared", "net-public")
	)
	usedBy := func(pods ...*corev1.Pod) gomegatypes.GomegaMatcher {
		var users []any
		for _, p := range pods {
			users = append(users, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
		}
		return HaveField("Status.ReservedFor", ConsistOf(users...))
	}
	allocated := HaveField("Status.Allocation", Not(BeNil()))

	BeforeAll(func(ctx SpecContext) {
		all := devices("one", "two", "three", "four")
		kit.Create(ctx, super.Client, all)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, all)).To(Succeed()) })
		offerPublicly(ctx, deviceClass("net-public"))
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns), shared)
		kit.ShouldExist(ctx, red.Client, deviceClass("net-public"))
	})

	It("is synced down with a pod that uses it, and has the devices and the tenant's pods in its status", func(ctx SpecContext) {
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, shared))

		first, second := kit.Pod(ns, "first", using(corev1.PodResourceClaim{ResourceClaimName: new("shared")})),
			kit.Pod(ns, "second", using(corev1.PodResourceClaim{ResourceClaimName: new("shared")}))
		kit.Create(ctx, red.Client, first, second)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("first", "second"))
		up := kit.Read(ctx, red.Client, shared)
		Eventually(up).Should(And(allocated, usedBy(first, second)))
		results := must(up()).Status.Allocation.Devices.Results
		Expect(results).To(HaveExactElements(And(HaveField("Driver", "net.example.com"), HaveField("Device", BeElementOf("one", "two", "three", "four")))))
		Expect(text(must(up()))).NotTo(Or(ContainSubstring(red.Key()), ContainSubstring("password")))

		Expect(red.Client.Delete(ctx, second)).To(Succeed())
		Eventually(up).Should(And(allocated, usedBy(first)))
	})

	It("has the driver's status of a device", func(ctx SpecContext) {
		down := kit.SuperOf(red, shared)
		Expect(kit.Get(ctx, super.Client, down)).To(Succeed())
		was, device := down.DeepCopy(), down.Status.Allocation.Devices.Results[0]
		down.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
			Driver: device.Driver, Pool: device.Pool, Device: device.Device,
			Data:        &runtime.RawExtension{Raw: []byte(`{"for":"` + down.Namespace + `/first"}`)},
			NetworkData: &resourcev1.NetworkDeviceData{InterfaceName: "net1"},
		}}
		Expect(super.Client.Status().Patch(ctx, down, client.MergeFrom(was))).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, shared)).Should(HaveField("Status.Devices", ConsistOf(And(
			HaveField("NetworkData.InterfaceName", "net1"), HaveField("Data.Raw", MatchJSON(`{"for":"devices/first"}`))))))
	})

	It("is deleted in the super cluster with the last pod, and has no device then", func(ctx SpecContext) {
		Expect(red.Client.Delete(ctx, kit.Pod(ns, "first"))).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, shared))
		Eventually(kit.Read(ctx, red.Client, shared)).Should(HaveField("Status", resourcev1.ResourceClaimStatus{}))
	})

	It("gets other devices when its own are gone", func(ctx SpecContext) {
		again := kit.Pod(ns, "again", using(corev1.PodResourceClaim{ResourceClaimName: new("shared")}))
		kit.Create(ctx, red.Client, again)
		up := kit.Read(ctx, red.Client, shared)
		Eventually(up).Should(And(allocated, usedBy(again)))
		was := must(up()).Status.Allocation.Devices.Results[0].Device

		// As if the claim had been deallocated and allocated again between two
		// reconciles.
		down := kit.SuperOf(red, shared)
		Expect(kit.Get(ctx, super.Client, down)).To(Succeed())
		allocation, consumers := down.Status.Allocation, down.Status.ReservedFor
		whileStopped(func() {
			down.Status = resourcev1.ResourceClaimStatus{}
			Expect(super.Client.Status().Update(ctx, down)).To(Succeed())
			allocation.Devices.Results[0].Device = map[string]string{"one": "two", "two": "three", "three": "four", "four": "one"}[was]
			down.Status.Allocation, down.Status.ReservedFor = allocation, consumers
			Expect(super.Client.Status().Update(ctx, down)).To(Succeed())
		})
		Eventually(up).Should(And(allocated, usedBy(again),
			HaveField("Status.Allocation.Devices.Results", ConsistOf(HaveField("Device", allocation.Devices.Results[0].Device)))))
	})

	It("of a class that is not offered is rejected, until it is", func(ctx SpecContext) {
		hidden := deviceClass("net-hidden")
		offerClass(ctx, hidden)
		secretly := deviceClaim(ns, "secretly", "net-hidden")
		kit.Create(ctx, red.Client, secretly, kit.Pod(ns, "waits", using(corev1.PodResourceClaim{ResourceClaimName: new("secretly")})))
		Eventually(kit.Rejections(ctx, red, secretly)).Should(ContainElement(ContainSubstring(`"net-hidden"`)))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, secretly))).NotTo(Succeed())

		kit.Edit(ctx, super.Client, hidden, func(c *resourcev1.DeviceClass) { publicClass(c) })
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("waits"))
	})

	It("is not the only way to a device: the class of an extended resource must be offered too", func(ctx SpecContext) {
		offerClass(ctx, deviceClass("net-quiet"))
		asks := func(class string) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
					corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + class): resource.MustParse("1"),
				}
			}
		}
		quiet, open := kit.Pod(ns, "quiet", asks("net-quiet")), kit.Pod(ns, "open", asks("net-public"))
		kit.Create(ctx, red.Client, quiet, open)
		Eventually(kit.Rejections(ctx, red, quiet)).Should(ContainElement(ContainSubstring("net-quiet")))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("open"))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, quiet))).NotTo(Succeed())
	})

	It("with admin access is rejected, whatever labels the tenant's namespace has", func(ctx SpecContext) {
		ours := kit.Namespace("admins")
		ours.Labels = map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"}
		bold := deviceClaim("admins", "bold", "net-public")
		bold.Spec.Devices.Requests[0].Exactly.AdminAccess = new(true)
		kit.Create(ctx, red.Client, ours, bold, kit.Pod("admins", "bold", using(corev1.PodResourceClaim{ResourceClaimName: new("bold")})))
		Eventually(kit.Rejections(ctx, red, bold)).Should(ContainElement(ContainSubstring("adminAccess is not allowed")))
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, bold))).NotTo(Succeed())
		down := kit.SuperOf(red, ours)
		kit.ShouldExist(ctx, super.Client, down)
		Expect(down.Labels).NotTo(HaveKey(resourcev1.DRAAdminNamespaceLabelKey))
	})
})

var _ = Describe("A ResourceClaimTemplate", func() {
	It("is synced down, and the super cluster creates a claim for each pod", func(ctx SpecContext) {
		const ns = "templates"
		all := devices("one", "two")
		kit.Create(ctx, super.Client, all)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, all)).To(Succeed()) })
		offerPublicly(ctx, deviceClass("net-public"))
		red := tenant(ctx, allowMetadata("ResourceClaimTemplate", []string{"app"}, nil))
		template := &resourcev1.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "each"},
			Spec: resourcev1.ResourceClaimTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: asking("net-public"),
			},
		}
		kit.Create(ctx, red.Client, kit.Namespace(ns), template)
		kit.ShouldExist(ctx, red.Client, deviceClass("net-public"))
		web := using(corev1.PodResourceClaim{ResourceClaimTemplateName: new("each")})
		kit.Create(ctx, red.Client, kit.Pod(ns, "a", web), kit.Pod(ns, "b", web))
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("a", "b"))

		made := &resourcev1.ResourceClaimList{}
		Expect(super.Client.List(ctx, made, client.InNamespace(red.Super(ns)), client.MatchingLabels{"app": "web"})).To(Succeed())
		Expect(made.Items).To(HaveLen(2))
		Expect(super.Client.List(ctx, made, client.MatchingLabels{names.VCNamespace: red.VC.Namespace, names.VCName: red.VC.Name})).To(Succeed())
		Expect(made.Items).To(HaveLen(2), "the claims of the project")
		settle(ctx)
		own := &resourcev1.ResourceClaimList{}
		Expect(red.Client.List(ctx, own, client.InNamespace(ns))).To(Succeed())
		Expect(own.Items).To(BeEmpty())
		Expect(must(kit.Read(ctx, red.Client, kit.Pod(ns, "a"))()).Status.ResourceClaimStatuses).To(BeEmpty())

		for _, name := range []string{"a", "b"} {
			Expect(red.Client.Delete(ctx, kit.Pod(ns, name))).To(Succeed())
		}
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, template))
		Eventually(func(g Gomega) {
			g.Expect(super.Client.List(ctx, made, client.InNamespace(red.Super(ns)))).To(Succeed())
			g.Expect(made.Items).To(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
	})
})
