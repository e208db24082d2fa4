package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// platformsOwn is a text in fields of a class that a tenant must not see.
const platformsOwn = "of-the-platform"

// classesOf returns one class of each kind that tenants choose from.
func classesOf(name string) []client.Object {
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"owner": platformsOwn}}
	return []client.Object{
		&storagev1.StorageClass{
			ObjectMeta: meta, Provisioner: "disk.example.com", MountOptions: []string{"password=" + platformsOwn},
			Parameters: map[string]string{"csi.storage.k8s.io/provisioner-secret-name": platformsOwn},
		},
		&storagev1.VolumeAttributesClass{
			ObjectMeta: meta, DriverName: "disk.example.com", Parameters: map[string]string{"iops": "3000"},
		},
		&storagev1.CSIDriver{
			ObjectMeta: meta, Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: platformsOwn}}},
		},
		&schedulingv1.PriorityClass{ObjectMeta: meta, Value: 1000, Description: "for what must not wait"},
		&networkingv1.IngressClass{ObjectMeta: meta, Spec: networkingv1.IngressClassSpec{
			Controller: "example.com/ingress",
			Parameters: &networkingv1.IngressClassParametersReference{
				Kind: "ConfigMap", Name: platformsOwn, Scope: new("Namespace"), Namespace: new("platform"),
			},
		}},
		&nodev1.RuntimeClass{
			ObjectMeta: meta, Handler: "sandbox",
			Overhead:   &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": platformsOwn}},
		},
		&resourcev1.DeviceClass{ObjectMeta: meta, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == 'gpu.example.com'"}}},
			Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
				Opaque: &resourcev1.OpaqueDeviceConfiguration{
					Driver: "gpu.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{"license": "` + platformsOwn + `"}`)},
				},
			}}},
		}},
	}
}

// offerClasses creates classes in the super cluster until the end of the specs,
// and returns their common name.
func offerClasses(ctx context.Context, change ...func(client.Object)) (name string, classes []client.Object) {
	GinkgoHelper()
	name = fmt.Sprintf("c%d", time.Now().UnixNano()%1e9)
	classes = classesOf(name)
	for _, class := range classes {
		for _, f := range change {
			f(class)
		}
		offerClass(ctx, class)
	}
	return name, classes
}

// offerClass creates a class in the super cluster until the end of the specs.
func offerClass(ctx context.Context, class client.Object) {
	GinkgoHelper()
	kit.Create(ctx, super.Client, class)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(super.Client.Delete(ctx, class))).To(Succeed())
	})
}

// publicClass labels a class for all tenants.
func publicClass(class client.Object) {
	class.SetLabels(map[string]string{"tier": "gold", names.Public: "true"})
}

// asShown returns an empty object with the name of a class, for reading the
// tenant's copy.
func asShown[T client.Object](class T) T {
	out := class.DeepCopyObject().(T)
	out.SetResourceVersion("")
	out.SetUID("")
	return out
}

// classesHeld returns the kinds of which a tenant has a class of that name.
func classesHeld(ctx context.Context, t *local.Tenant, name string) []string {
	var kinds []string
	for _, class := range classesOf(name) {
		if t.Client.Get(ctx, client.ObjectKeyFromObject(class), class) == nil {
			kinds = append(kinds, fmt.Sprintf("%T", class))
		}
	}
	return kinds
}

var _ = Describe("Classes of the super cluster", Ordered, func() {
	var red, blue *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		red, blue = tenant(ctx), tenant(ctx)
	})

	It("are synced up to all tenants while they have the label, without the platform's own fields", func(ctx SpecContext) {
		name, classes := offerClasses(ctx)
		Consistently(classesHeld).WithContext(ctx).WithArguments(red, name).Should(BeEmpty())
		for _, class := range classes {
			kit.Edit(ctx, super.Client, class, publicClass)
		}
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(classesHeld).WithContext(ctx).WithArguments(t, name).Should(HaveLen(len(classes)))
			for _, class := range classes {
				shown := asShown(class)
				Expect(kit.Get(ctx, t.Client, shown)).To(Succeed())
				Expect(shown.GetLabels()).To(Equal(map[string]string{"tier": "gold", names.FromSuper: "true"}))
				Expect(text(shown)).NotTo(ContainSubstring(platformsOwn))
			}
		}
		settle(ctx)

		for _, class := range classes {
			kit.Edit(ctx, super.Client, class, func(class client.Object) { class.SetLabels(map[string]string{names.Public: "false"}) })
		}
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(classesHeld).WithContext(ctx).WithArguments(t, name).Should(BeEmpty())
		}
	})

	It("are restored when a tenant changes or deletes them", func(ctx SpecContext) {
		name, classes := offerClasses(ctx, publicClass)
		Eventually(classesHeld).WithContext(ctx).WithArguments(red, name).Should(HaveLen(len(classes)))
		for _, class := range classes {
			shown := asShown(class)
			kit.Edit(ctx, red.Client, shown, func(obj client.Object) {
				obj.SetLabels(map[string]string{"mine": "yes"})
				changeClass(obj)
			})
			Eventually(kit.Read(ctx, red.Client, shown)).Should(WithTransform(client.Object.GetLabels,
				Equal(map[string]string{"tier": "gold", names.FromSuper: "true"})))
			Expect(text(must(kit.Read(ctx, red.Client, shown)()))).NotTo(ContainSubstring("of-the-tenant"))
			Expect(red.Client.Delete(ctx, shown)).To(Succeed())
		}
		Eventually(classesHeld).WithContext(ctx).WithArguments(red, name).Should(HaveLen(len(classes)))
	})

	It("are recreated when the super cluster replaces them", func(ctx SpecContext) {
		name, _ := offerClasses(ctx, publicClass)
		Eventually(classesHeld).WithContext(ctx).WithArguments(red, name).Should(HaveLen(len(classesOf(name))))
		whileStopped(func() {
			for _, class := range classesOf(name) {
				Expect(super.Client.Delete(ctx, class)).To(Succeed())
				kit.ShouldVanish(ctx, super.Client, class)
				class = asShown(class)
				publicClass(class)
				renewClass(class)
				kit.Create(ctx, super.Client, class)
			}
		})
		Eventually(func(g Gomega) {
			for _, class := range classesOf(name) {
				g.Expect(kit.Get(ctx, red.Client, class)).To(Succeed())
				replaced := class.DeepCopyObject().(client.Object)
				renewClass(replaced)
				g.Expect(text(class)).To(Equal(text(replaced)))
			}
		}).WithContext(ctx).Should(Succeed())
	})

	It("leave a tenant's own class alone and report it, until that is gone", func(ctx SpecContext) {
		own := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("own%d", time.Now().UnixNano()%1e9)}, Provisioner: "mine.example.com",
		}
		kit.Create(ctx, blue.Client, own)
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: own.Name}, Provisioner: "disk.example.com"}
		publicClass(class)
		offerClass(ctx, class)
		Eventually(kit.Rejections(ctx, blue, own)).
			Should(ContainElement(ContainSubstring("the tenant's own")))
		Expect(must(kit.Read(ctx, blue.Client, own)()).Provisioner).To(Equal("mine.example.com"))
		kit.ShouldExist(ctx, red.Client, asShown(class))

		Expect(blue.Client.Delete(ctx, own)).To(Succeed())
		Eventually(kit.Read(ctx, blue.Client, asShown(class))).Should(HaveField("Provisioner", "disk.example.com"))
		// Deleting the super cluster's class does not delete the tenant's
		// either.
		Expect(super.Client.Delete(ctx, class)).To(Succeed())
		kit.ShouldVanish(ctx, blue.Client, asShown(class))
		again := asShown(own)
		kit.Create(ctx, blue.Client, again)
		Consistently(kit.Get).WithContext(ctx).WithArguments(blue.Client, again).Should(Succeed())
	})

	It("leave the built-in priority classes alone, even when they are published", func(ctx SpecContext) {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}}
		kit.Edit(ctx, super.Client, class, func(c *schedulingv1.PriorityClass) { c.Labels = map[string]string{names.Public: "true"} })
		DeferCleanup(func(ctx SpecContext) {
			kit.Edit(ctx, super.Client, class, func(c *schedulingv1.PriorityClass) { c.Labels = nil })
		})
		own := asShown(class)
		Expect(kit.Get(ctx, red.Client, own)).To(Succeed())
		Consistently(kit.Rejections(ctx, red, own)).Should(BeEmpty())
		Expect(must(kit.Read(ctx, red.Client, own)()).Labels).NotTo(HaveKey(names.FromSuper))
	})

	It("are synced up to the only tenant whose VirtualCluster names them, except the kinds that it disables", func(ctx SpecContext) {
		name, classes := offerClasses(ctx)
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{}
			for _, kind := range []tenancyv1alpha1.ClassKind{
				"StorageClass", "VolumeAttributesClass", "CSIDriver", "PriorityClass", "IngressClass", "RuntimeClass", "DeviceClass",
			} {
				vc.Spec.Sync.Publish = append(vc.Spec.Sync.Publish, tenancyv1alpha1.PublishedClasses{Kind: kind, Names: []string{"other", name}})
			}
		})
		Eventually(classesHeld).WithContext(ctx).WithArguments(red, name).Should(HaveLen(len(classes)))
		Consistently(classesHeld).WithContext(ctx).WithArguments(blue, name).Should(BeEmpty())

		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync.Kinds = []tenancyv1alpha1.KindSync{{Kind: "StorageClass", Mode: tenancyv1alpha1.SyncOff}}
		})
		Eventually(classesHeld).WithContext(ctx).WithArguments(red, name).Should(HaveLen(len(classes) - 1))
		Expect(kit.Get(ctx, red.Client, asShown(classes[0]))).To(MatchError(apierrors.IsNotFound, "not found"))

		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Sync = nil })
		Eventually(classesHeld).WithContext(ctx).WithArguments(red, name).Should(BeEmpty())
	})
})

// changeClass makes a change of each kind of class that a tenant may want.
func changeClass(class client.Object) {
	switch class := class.(type) {
	case *storagev1.StorageClass:
		class.MountOptions = []string{"of-the-tenant"}
	case *storagev1.CSIDriver:
		class.Spec.TokenRequests = []storagev1.TokenRequest{{Audience: "of-the-tenant"}}
	case *schedulingv1.PriorityClass:
		class.Description = "of-the-tenant"
	case *networkingv1.IngressClass:
		class.Spec.Parameters = &networkingv1.IngressClassParametersReference{Kind: "ConfigMap", Name: "of-the-tenant", Scope: new("Cluster")}
	case *nodev1.RuntimeClass:
		class.Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"pool": "of-the-tenant"}}
	case *resourcev1.DeviceClass:
		class.Spec.ExtendedResourceName = new("of-the-tenant.example.com/gpu")
	}
}

// renewClass makes a change of each kind of class that an apiserver accepts on
// creation only.
func renewClass(class client.Object) {
	switch class := class.(type) {
	case *storagev1.StorageClass:
		class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	case *storagev1.VolumeAttributesClass:
		class.Parameters = map[string]string{"iops": "4000"}
	case *storagev1.CSIDriver:
		class.Spec.AttachRequired = new(false)
	case *schedulingv1.PriorityClass:
		class.Value = 2000
	case *networkingv1.IngressClass:
		class.Spec.Controller = "example.com/other"
	case *nodev1.RuntimeClass:
		class.Handler = "other"
	case *resourcev1.DeviceClass:
		class.Spec.Selectors = nil
	}
}
