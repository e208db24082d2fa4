package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("A tenant's StatefulSet", func() {
	It("has its data again after its pod was deleted, and its volume goes with its claim", func(ctx SpecContext) {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
		Eventually(get).WithContext(ctx).WithArguments(red, class).Should(Succeed(), "it is published to all tenants")
		ns := newNamespace(ctx, red)
		set := statefulSet(ns, "db")
		create(ctx, red, set)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db-0"}}
		Eventually(read(red, p)).WithContext(ctx).Should(HaveField("Status.Phase", corev1.PodRunning))
		first, err := read(red, p)(ctx)
		Expect(err).NotTo(HaveOccurred())
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data-db-0"}}
		Eventually(read(red, claim)).WithContext(ctx).Should(HaveField("Status.Phase", corev1.ClaimBound))
		Expect(get(ctx, red, claim)).To(Succeed())

		Expect(red.Client.Delete(ctx, first)).To(Succeed())
		Eventually(readyBeside(p, first.UID)).WithContext(ctx).Should(BeTrue(), "the second start finds what the first has left")

		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		Expect(get(ctx, red, volume)).To(Succeed())
		Expect(red.Client.Delete(ctx, set)).To(Succeed())
		Expect(red.Client.Delete(ctx, claim)).To(Succeed())
		Eventually(get).WithContext(ctx).WithArguments(red, volume).Should(beNotFound)
	})
})

// readyBeside reports whether another pod of the name is ready than the one with a UID.
func readyBeside(p *corev1.Pod, before types.UID) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		now, err := read(red, p)(ctx)
		if err != nil || now.UID == before || len(now.Status.ContainerStatuses) == 0 {
			return false, nil //nolint:nilerr // between the two there is none
		}
		return now.Status.ContainerStatuses[0].Ready, nil
	}
}

// statefulSet has one pod, which leaves a line on its volume at each start, and
// is ready when it finds two.
func statefulSet(ns, name string) *appsv1.StatefulSet {
	template := pod(ns, name, busybox, "sh", "-c", "date >> /data/starts; sleep 3600")
	main := &template.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	main.ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
			Command: []string{"sh", "-c", `[ "$(wc -l < /data/starts)" -ge 2 ]`},
		}},
		PeriodSeconds: 1,
	}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
		},
	}
}
