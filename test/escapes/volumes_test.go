package escapes

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Volumes that outlive their claims", Ordered, func() {
	const ns = "hoard"
	var (
		mallory *local.Tenant
		class   string
	)

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		class = offeredClass(ctx, mallory)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a volume that the tenant has kept for good", "review: Back synced Retain to the super cluster", func(ctx SpecContext) {
		volume := volumeFor(ctx, class, corev1.PersistentVolumeReclaimDelete)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "kept"}, Spec: claimSpec(class)}
		kit.Create(ctx, mallory.Client, claim)
		shown := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name}}
		kit.ShouldExist(ctx, mallory.Client, shown)
		kit.Edit(ctx, mallory.Client, shown, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})
		Eventually(kit.Read(ctx, mallory.Client, shown)).
			Should(HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete), "the tenant is shown what holds")
		Consistently(kit.Read(ctx, super.Client, volume)).
			Should(HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimDelete))
	})
})

// offeredClass offers all tenants a class whose volumes an admin makes, and
// returns its name.
func offeredClass(ctx context.Context, t *local.Tenant) string {
	GinkgoHelper()
	name := "class-" + t.VC.Name
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{names.Public: "true"}},
		Provisioner: "kubernetes.io/no-provisioner",
	}
	kit.Create(ctx, super.Client, class)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
	kit.ShouldExist(ctx, t.Client, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

// volumeFor creates a volume of a class for the next claim, as an admin would.
func volumeFor(ctx context.Context, class string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	GinkgoHelper()
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("v-%s-", class)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: kit.Amounts("storage", "1Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "disk.example.com", VolumeHandle: "disk-1",
			}},
			StorageClassName: class, PersistentVolumeReclaimPolicy: policy,
		},
	}
	kit.Create(ctx, super.Client, v)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(super.Client.Delete(ctx, v))).To(Succeed())
		Eventually(func(ctx SpecContext) error {
			if err := kit.Get(ctx, super.Client, v); err != nil {
				return err
			}
			v.Finalizers = nil
			return super.Client.Update(ctx, v)
		}).WithContext(ctx).Should(MatchError(apierrors.IsNotFound, "not found"))
	})
	return v
}
