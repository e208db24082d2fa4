package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A tenant's pod", func() {
	It("runs beside one of the same name of another tenant", Label(smoke), func(ctx SpecContext) {
		const ns, name = "default", "twin"
		var twins []*corev1.Pod
		for _, t := range []*local.Tenant{red, blue} {
			p := server(ns, name)
			Eventually(t.Client.Create).WithContext(ctx).WithArguments(p).Should(Succeed(), "when there is a service account")
			DeferCleanup(func(ctx SpecContext) { Expect(t.Client.Delete(ctx, p)).To(Succeed()) })
			twins = append(twins, shouldBeReady(ctx, t, p))
		}
		Expect(twins[0].Status.PodIP).NotTo(BeEmpty())
		Expect(twins[0].Status.PodIP).NotTo(Equal(twins[1].Status.PodIP))
		Expect(twins[0].Spec.NodeName).NotTo(BeEmpty())
	})

	It("is reached by others of its tenant at its address", Label(smoke), func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		p := server(ns, "server")
		create(ctx, red, p)
		ready := shouldBeReady(ctx, red, p)
		shouldReach(ctx, red, ns, fmt.Sprintf("%s:%d", ready.Status.PodIP, port))
	})

	It("shows how often its container was restarted, and why", func(ctx SpecContext) {
		p := pod(newNamespace(ctx, red), "failing", busybox, "sh", "-c", "exit 7")
		create(ctx, red, p)
		Eventually(restarts(red, p)).WithContext(ctx).Should(BeNumerically(">=", 2))
		now, err := read(red, p)(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(now.Status.ContainerStatuses[0].LastTerminationState.Terminated).To(HaveField("ExitCode", BeEquivalentTo(7)))
	})

	It("completes its Job", Label(smoke), func(ctx SpecContext) {
		done := job(pod(newNamespace(ctx, red), "done", busybox, "sh", "-c", "true"))
		create(ctx, red, done)
		Eventually(read(red, done)).WithContext(ctx).Should(HaveField("Status.Succeeded", BeEquivalentTo(1)))
	})

	It("reads a ConfigMap and a Secret as the tenant changes them", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		settings := &corev1.ConfigMap{Data: map[string]string{"word": "old"}}
		settings.Namespace, settings.Name = ns, "settings"
		p := pod(ns, "reader", busybox, "sh", "-c", "until grep -q new /settings/word; do sleep 1; done")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Volumes = []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: settings.Name}},
		}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}}
		create(ctx, red, settings, p)
		shouldBeReady(ctx, red, p)
		settings.Data["word"] = "new"
		Expect(red.Client.Update(ctx, settings)).To(Succeed())
		// A kubelet looks once a minute.
		Eventually(read(red, p)).WithContext(ctx).WithTimeout(2 * soon).Should(HaveField("Status.Phase", corev1.PodSucceeded))
	})

	It("ends within its grace period when it is deleted", func(ctx SpecContext) {
		p := server(newNamespace(ctx, red), "server")
		create(ctx, red, p)
		shouldBeReady(ctx, red, p)
		Expect(red.Client.Delete(ctx, p)).To(Succeed())
		Eventually(func(ctx context.Context) error { return get(ctx, red, p) }).WithContext(ctx).Should(beNotFound)
	})
})
