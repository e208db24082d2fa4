package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// storageClass creates a class of the driver that these tests simulate, until
// the specs end.
func storageClass(ctx context.Context, change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	GinkgoHelper()
	class := &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: fmt.Sprintf("s%d", time.Now().UnixNano()%1e9), Labels: map[string]string{names.Public: "true"}},
		Provisioner:          driverName,
		AllowVolumeExpansion: new(true),
		Parameters:           map[string]string{"csi.storage.k8s.io/provisioner-secret-name": platformsOwn},
	}
	for _, f := range change {
		f(class)
	}
	offerClass(ctx, class)
	return class
}

// firstConsumer sets WaitForFirstConsumer in a class.
func firstConsumer(class *storagev1.StorageClass) {
	class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
}

func claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
		},
	}
}

func claim(ns, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: claimSpec(class)}
}

func withClaim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// shouldBind waits until a tenant's claim is bound, and updates the object.
func shouldBind(ctx context.Context, t *local.Tenant, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(kit.Get(ctx, t.Client, claim)).To(Succeed())
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		g.Expect(claim.Spec.VolumeName).NotTo(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
}

// shouldShowCondition sets a condition of a copy, and waits until the tenant's
// claim has it.
func shouldShowCondition(ctx context.Context, t *local.Tenant, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	copied := kit.SuperOf(t, claim)
	Eventually(func() error {
		if err := kit.Get(ctx, super.Client, copied); err != nil {
			return err
		}
		copied.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
			Message: "waiting for a pod in " + copied.Namespace,
		}}
		return super.Client.Status().Update(ctx, copied)
	}).WithContext(ctx).Should(Succeed())
	Eventually(kit.Read(ctx, t.Client, claim)).Should(HaveField("Status.Conditions",
		ConsistOf(HaveField("Message", "waiting for a pod in "+claim.Namespace))))
}

// volumeOf returns the volume of a bound claim.
func volumeOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
}

// size returns the storage capacity.
func size(capacity corev1.ResourceList) string {
	q := capacity[corev1.ResourceStorage]
	return q.String()
}

// reclaim sets the reclaim policy of a volume.
func reclaim(policy corev1.PersistentVolumeReclaimPolicy) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy }
}

// policyOf returns the reclaim policy of a volume.
func policyOf(v *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	return v.Spec.PersistentVolumeReclaimPolicy
}

var _ = Describe("Volumes", Ordered, func() {
	const ns = "data"
	var (
		red, blue *local.Tenant
		class     *storagev1.StorageClass
		db        *corev1.PersistentVolumeClaim
	)

	BeforeAll(func(ctx SpecContext) {
		red, blue = tenant(ctx), tenant(ctx)
		class = storageClass(ctx)
		playDriver()
		for _, t := range []*local.Tenant{red, blue} {
			kit.Create(ctx, t.Client, kit.Namespace(ns))
			kit.ShouldExist(ctx, t.Client, asShown(class))
		}
		db = claim(ns, "db", class.Name)
	})

	It("are provisioned for a tenant's claim and synced up to its tenant only, without the storage behind them", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, db)
		shouldBind(ctx, red, db)
		copied := kit.SuperOf(red, db)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Spec.VolumeName).To(Equal(db.Spec.VolumeName))
		Expect(size(db.Status.Capacity)).To(Equal("10Gi"))

		volume := volumeOf(db)
		kit.ShouldExist(ctx, red.Client, volume)
		Expect(volume.Spec.ClaimRef).To(And(
			HaveField("Namespace", ns), HaveField("Name", db.Name), HaveField("UID", db.UID)))
		Expect(volume.Spec.CSI.Driver).To(Equal(driverName))
		Expect(volume.Labels).To(HaveKeyWithValue("topology.kubernetes.io/zone", "a"))
		Expect(volume.Labels).NotTo(HaveKey("pool"))
		for _, leak := range []string{platformsOwn, red.Key()} {
			Expect(text(volume)).NotTo(ContainSubstring(leak))
			Expect(text(db)).NotTo(ContainSubstring(leak))
		}
		Eventually(kit.Read(ctx, red.Client, volume)).Should(HaveField("Status.Phase", corev1.VolumeBound))
		settle(ctx) // the tenant's binder and the syncer agree

		kit.Create(ctx, blue.Client, claim(ns, "db", class.Name))
		blues := claim(ns, "db", class.Name)
		shouldBind(ctx, blue, blues)
		Expect(blues.Spec.VolumeName).NotTo(Equal(db.Spec.VolumeName))
		for t, own := range map[*local.Tenant]string{red: db.Spec.VolumeName, blue: blues.Spec.VolumeName} {
			Eventually(volumesOf).WithContext(ctx).WithArguments(t).Should(ConsistOf(own))
		}
	})

	It("are used by pods", func(ctx SpecContext) {
		p := kit.Pod(ns, "db", withClaim("db"))
		kit.Create(ctx, red.Client, p)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("db"))
	})

	It("are expanded in the super cluster and in the tenant", func(ctx SpecContext) {
		kit.Edit(ctx, red.Client, db, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("20Gi")
		})
		Eventually(func(g Gomega) {
			g.Expect(kit.Read(ctx, super.Client, kit.SuperOf(red, db))()).
				To(HaveField("Spec.Resources.Requests", WithTransform(size, Equal("20Gi"))))
			g.Expect(kit.Read(ctx, red.Client, db)()).To(HaveField("Status.Capacity", WithTransform(size, Equal("20Gi"))))
			g.Expect(kit.Read(ctx, red.Client, volumeOf(db))()).To(HaveField("Spec.Capacity", WithTransform(size, Equal("20Gi"))))
		}).WithContext(ctx).Should(Succeed())
	})

	It("report the progress of an expansion in the tenant's own terms", func(ctx SpecContext) {
		shouldShowCondition(ctx, red, db)
	})

	It("are retained or deleted as the tenant sets, and are not changed otherwise", func(ctx SpecContext) {
		volume := volumeOf(db)
		kit.Edit(ctx, red.Client, volume, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1Ti")
			v.Spec.ClaimRef = nil
		})
		Eventually(kit.Read(ctx, super.Client, volumeOf(db))).Should(WithTransform(policyOf, Equal(corev1.PersistentVolumeReclaimRetain)))
		Eventually(func(g Gomega) {
			now, err := kit.Read(ctx, red.Client, volume)()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(policyOf(now)).To(Equal(corev1.PersistentVolumeReclaimRetain))
			g.Expect(size(now.Spec.Capacity)).To(Equal("20Gi"))
			g.Expect(now.Spec.ClaimRef).To(HaveField("UID", db.UID))
		}).WithContext(ctx).Should(Succeed())
		Expect(size(must(kit.Read(ctx, super.Client, volumeOf(db))()).Spec.Capacity)).To(Equal("20Gi"))
	})

	It("are protected with their claim while pods use them, and retained until the tenant deletes them", func(ctx SpecContext) {
		volume := volumeOf(db)
		Expect(red.Client.Delete(ctx, db)).To(Succeed())
		Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, db)).Should(Succeed())
		Expect(kit.Get(ctx, red.Client, db)).To(Succeed())

		Expect(red.Client.Delete(ctx, kit.Pod(ns, "db"), client.GracePeriodSeconds(1))).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, db)
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, db))
		for _, c := range []client.Client{super.Client, red.Client} {
			Eventually(kit.Read(ctx, c, volumeOf(db))).Should(HaveField("Status.Phase", corev1.VolumeReleased))
		}

		// Another claim of the same name gets another volume.
		again := claim(ns, db.Name, class.Name)
		kit.Create(ctx, red.Client, again)
		shouldBind(ctx, red, again)
		Expect(again.Spec.VolumeName).NotTo(Equal(volume.Name))

		kit.Edit(ctx, red.Client, volume, reclaim(corev1.PersistentVolumeReclaimDelete))
		kit.ShouldVanish(ctx, super.Client, volumeOf(db))
		kit.ShouldVanish(ctx, red.Client, volume)

		Expect(red.Client.Delete(ctx, again)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, again))
		kit.ShouldVanish(ctx, super.Client, volumeOf(again))
		kit.ShouldVanish(ctx, red.Client, volumeOf(again))
	})

	It("of ephemeral claims are deleted with their pods", func(ctx SpecContext) {
		p := kit.Pod(ns, "batch", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec(class.Name)},
			}}}}
		})
		kit.Create(ctx, red.Client, p)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("batch"))
		scratch := claim(ns, "batch-scratch", class.Name)
		shouldBind(ctx, red, scratch)
		Expect(red.Client.Delete(ctx, p, client.GracePeriodSeconds(1))).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, scratch)
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, scratch))
		kit.ShouldVanish(ctx, red.Client, volumeOf(scratch))
	})

	It("of a class with WaitForFirstConsumer are provisioned for the pods of a StatefulSet", func(ctx SpecContext) {
		waiting := storageClass(ctx, firstConsumer)
		kit.ShouldExist(ctx, red.Client, asShown(waiting))
		template := kit.Pod(ns, "ring", withClaim("ring"))
		template.Spec.Volumes = nil
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "ring"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(int32(2)),
				Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
					ObjectMeta: metav1.ObjectMeta{Name: "ring"}, Spec: claimSpec(waiting.Name),
				}},
			},
		}
		kit.Create(ctx, red.Client, set)
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).WithTimeout(2 * kit.Soon).
			Should(ContainElements("ring-0", "ring-1"))
		for _, name := range []string{"ring-ring-0", "ring-ring-1"} {
			shouldBind(ctx, red, claim(ns, name, waiting.Name))
		}
		settle(ctx)
	})

	It("have the default class if a claim names none", func(ctx SpecContext) {
		preferred := storageClass(ctx, func(c *storagev1.StorageClass) {
			c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		})
		kit.ShouldExist(ctx, red.Client, asShown(preferred))
		plain := claim(ns, "plain", "")
		plain.Spec.StorageClassName = nil
		// The tenant's apiserver may see the new class later than this test;
		// its binder sets the class then.
		kit.Create(ctx, red.Client, plain)
		shouldBind(ctx, red, plain)
		Expect(plain.Spec.StorageClassName).To(HaveValue(Equal(preferred.Name)))
	})

	It("of a class that is not offered are rejected with a hint how to find others, until it is", func(ctx SpecContext) {
		secret := storageClass(ctx, func(c *storagev1.StorageClass) { c.Labels = nil })
		none, other := claim(ns, "none", ""), claim(ns, "other", secret.Name)
		sly := claim(ns, "sly", class.Name)
		sly.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": secret.Name}
		kit.Create(ctx, red.Client, none, other, sly)
		for _, refused := range []*corev1.PersistentVolumeClaim{none, other, sly} {
			Eventually(kit.Rejections(ctx, red, refused)).Should(ContainElement(And(
				ContainSubstring("spec.storageClassName"), ContainSubstring("kubectl get storageclasses"))))
			Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, refused))).NotTo(Succeed())
		}
		kit.Edit(ctx, super.Client, secret, func(c *storagev1.StorageClass) { c.Labels = map[string]string{names.Public: "true"} })
		shouldBind(ctx, red, other)
		shouldBind(ctx, red, sly)
		Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, none))).NotTo(Succeed())

		// Existing copies are still synced when the class is gone.
		kit.Edit(ctx, super.Client, secret, func(c *storagev1.StorageClass) { c.Labels = nil })
		kit.ShouldVanish(ctx, red.Client, asShown(secret))
		Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, other)).Should(Succeed())
		shouldShowCondition(ctx, red, other)
	})

	It("keep their data when the copy of a claim is lost", func(ctx SpecContext) {
		kept := claim(ns, "kept", class.Name)
		kit.Create(ctx, red.Client, kept)
		shouldBind(ctx, red, kept)
		kit.Edit(ctx, red.Client, volumeOf(kept), reclaim(corev1.PersistentVolumeReclaimRetain))
		Eventually(kit.Read(ctx, super.Client, volumeOf(kept))).Should(WithTransform(policyOf, Equal(corev1.PersistentVolumeReclaimRetain)))
		lost := kit.SuperOf(red, kept)
		kit.ShouldExist(ctx, super.Client, lost)
		was := lost.UID
		Expect(super.Client.Delete(ctx, lost)).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, lost)).Should(WithTransform(client.Object.GetUID, And(Not(BeEmpty()), Not(Equal(was)))))
		Consistently(kit.Read(ctx, super.Client, lost)).Should(HaveField("Status.Phase", corev1.ClaimPending))
		Eventually(kit.Read(ctx, super.Client, volumeOf(kept))).Should(HaveField("Status.Phase", corev1.VolumeReleased))
		settle(ctx)

		kit.Edit(ctx, super.Client, volumeOf(kept), func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef.UID, v.Spec.ClaimRef.ResourceVersion = "", ""
		})
		Eventually(kit.Read(ctx, super.Client, lost)).Should(HaveField("Status.Phase", corev1.ClaimBound))
		shouldBind(ctx, red, kept)
		Eventually(kit.Read(ctx, red.Client, volumeOf(kept))).Should(HaveField("Status.Phase", corev1.VolumeBound))
		kit.Edit(ctx, red.Client, volumeOf(kept), reclaim(corev1.PersistentVolumeReclaimDelete))
	})

	It("are deleted in a tenant when an admin binds them to another tenant's claim that names them", func(ctx SpecContext) {
		lent := claim(ns, "lent", class.Name)
		kit.Create(ctx, red.Client, lent)
		shouldBind(ctx, red, lent)
		kit.Edit(ctx, red.Client, volumeOf(lent), reclaim(corev1.PersistentVolumeReclaimRetain))
		Eventually(kit.Read(ctx, super.Client, volumeOf(lent))).Should(WithTransform(policyOf, Equal(corev1.PersistentVolumeReclaimRetain)))
		Expect(red.Client.Delete(ctx, lent)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, volumeOf(lent))).Should(HaveField("Status.Phase", corev1.VolumeReleased))

		// A claim does not get a volume just because it names it.
		given := claim(ns, "given", class.Name)
		given.Spec.VolumeName = lent.Spec.VolumeName
		kit.Create(ctx, blue.Client, given)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(blue, given))
		Consistently(kit.Read(ctx, super.Client, kit.SuperOf(blue, given))).Should(HaveField("Status.Phase", corev1.ClaimPending))
		Expect(volumesOf(ctx, blue)).NotTo(ContainElement(lent.Spec.VolumeName))

		kit.Edit(ctx, super.Client, volumeOf(lent), func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: blue.Super(ns), Name: given.Name,
			}
		})
		shouldBind(ctx, blue, given)
		Eventually(kit.Read(ctx, blue.Client, volumeOf(lent))).Should(HaveField("Spec.ClaimRef.UID", given.UID))
		kit.ShouldVanish(ctx, red.Client, volumeOf(lent))
		kit.Edit(ctx, blue.Client, volumeOf(lent), reclaim(corev1.PersistentVolumeReclaimDelete))
	})

	It("are not synced for a tenant that disables them", func(ctx SpecContext) {
		const ns = "off"
		one := claim(ns, "one", class.Name)
		kit.Create(ctx, blue.Client, kit.Namespace(ns), one)
		shouldBind(ctx, blue, one)
		kit.ShouldExist(ctx, blue.Client, volumeOf(one))
		off := []tenancyv1alpha1.KindSync{
			{Kind: "PersistentVolumeClaim", Mode: tenancyv1alpha1.SyncOff}, {Kind: "PersistentVolume", Mode: tenancyv1alpha1.SyncOff},
		}
		kit.Edit(ctx, super.Client, blue.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{Kinds: off}
		})
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(blue, one))
		Eventually(volumesOf).WithContext(ctx).WithArguments(blue).Should(BeEmpty())
		kit.Create(ctx, blue.Client, claim(ns, "two", class.Name))
		Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(blue, claim(ns, "two", class.Name))).ShouldNot(Succeed())

		kit.Edit(ctx, super.Client, blue.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Sync = nil })
		two := claim(ns, "two", class.Name)
		shouldBind(ctx, blue, two)
		Eventually(volumesOf).WithContext(ctx).WithArguments(blue).Should(ConsistOf(two.Spec.VolumeName))
	})

	It("are deleted with a namespace", func(ctx SpecContext) {
		bound, blues := volumesOf(ctx, red), volumesOf(ctx, blue)
		Expect(bound).NotTo(BeEmpty())
		Expect(blues).NotTo(BeEmpty())
		Expect(red.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed())
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, kit.Namespace(ns))).WithTimeout(3 * kit.Soon).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		for _, name := range bound {
			kit.ShouldVanish(ctx, super.Client, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		Eventually(volumesOf).WithContext(ctx).WithArguments(red).Should(BeEmpty())
		Expect(volumesOf(ctx, blue)).To(ConsistOf(blues))
	})
})

// volumesOf returns the names of the volumes in a tenant.
func volumesOf(ctx context.Context, t *local.Tenant) []string {
	volumes := &corev1.PersistentVolumeList{}
	if err := t.Client.List(ctx, volumes); err != nil {
		return []string{"not known to be none"}
	}
	found := []string{}
	for _, v := range volumes.Items {
		found = append(found, v.Name)
	}
	return found
}
