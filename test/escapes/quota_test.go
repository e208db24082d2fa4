package escapes

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The quota of storage", Ordered, func() {
	const ns = "vault"
	var (
		mallory *local.Tenant
		class   string
	)

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Quota = &tenancyv1alpha1.QuotaSpec{Hard: tenancyv1alpha1.Limits{"requests.storage": "1Gi", "count/endpoints": "1"}}
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24"}}
		})
		class = offeredClass(ctx, mallory)
	})

	// hoards keeps a volume of a class that retains volumes, and returns it
	// with the claim that is refused then.
	hoards := func(ctx SpecContext, release func(*corev1.PersistentVolumeClaim)) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
		volume := volumeFor(ctx, class, corev1.PersistentVolumeReclaimRetain)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		first := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "first"}, Spec: claimSpec(class)}
		kit.Create(ctx, mallory.Client, first)
		kit.ShouldExist(ctx, mallory.Client, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name}})
		release(first)
		Eventually(kit.Read(ctx, super.Client, volume)).Should(HaveField("Status.Phase", corev1.VolumeReleased))
		kit.Create(ctx, mallory.Client, kit.Namespace("again"))
		second := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "again", GenerateName: "more-"}, Spec: claimSpec(class)}
		kit.Create(ctx, mallory.Client, second)
		return volume, second
	}
	tooMuch := func(ctx SpecContext, volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
		Eventually(warnings(ctx, mallory, claim)).Should(ContainElement(ContainSubstring("requests.storage: used 1Gi, asked 1Gi, hard 1Gi")))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, claim))
		Expect(super.Client.Delete(ctx, volume)).To(Succeed())
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, claim)) // there is room again
		Expect(mallory.Client.Delete(ctx, kit.Namespace("again"))).To(Succeed())
		kit.ShouldVanish(ctx, mallory.Client, kit.Namespace("again"))
		// Or the copy of the claim would be bound to the volume of the next spec.
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace("again")))
	}

	attack("storage beyond the quota, claim after claim whose volumes stay", "review: a volume without a claim counted for nothing", func(ctx SpecContext) {
		volume, second := hoards(ctx, func(first *corev1.PersistentVolumeClaim) {
			Expect(mallory.Client.Delete(ctx, first)).To(Succeed())
		})
		tooMuch(ctx, volume, second)
		Expect(mallory.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed())
		kit.ShouldVanish(ctx, mallory.Client, kit.Namespace(ns))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(ns)))
	})

	attack("storage beyond the quota, namespace after namespace", "review: a volume whose namespace was gone counted for nothing", func(ctx SpecContext) {
		volume, second := hoards(ctx, func(*corev1.PersistentVolumeClaim) {
			Expect(mallory.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed())
			kit.ShouldVanish(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(ns)))
		})
		tooMuch(ctx, volume, second)
	})

	attack("any number of endpoints", "review: Endpoints, slices and resource claims counted for nothing", func(ctx SpecContext) {
		const ns = "many"
		kit.Create(ctx, mallory.Client, kit.Namespace(ns), endpoints(ns, "first"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, endpoints(ns, "first")))
		second := endpoints(ns, "second")
		kit.Create(ctx, mallory.Client, second)
		Eventually(warnings(ctx, mallory, second)).Should(ContainElement(ContainSubstring("count/endpoints: used 1, asked 1, hard 1")))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(mallory, second))
	})
})

// endpoints returns Endpoints that a tenant wrote.
func endpoints(ns, name string) *corev1.Endpoints { //nolint:staticcheck // deprecated, and still synced down
	return &corev1.Endpoints{ //nolint:staticcheck // see above
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // see above
			Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Port: 80}},
		}},
	}
}
