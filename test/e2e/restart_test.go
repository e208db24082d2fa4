package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

// Specs that take the node from under others run alone.
var _ = Describe("A tenant's pods", Serial, func() {
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		It("run on while "+name+" is restarted, and new ones come after it", func(ctx SpecContext) {
			ns := newNamespace(ctx, red)
			old := server(ns, "old")
			create(ctx, red, old)
			before := shouldBeReady(ctx, red, old)
			kit.Kill(func() (int, error) { return super.NodeProgramPID(name) })
			p := server(ns, "new")
			create(ctx, red, p)
			ready := shouldBeReady(ctx, red, p)
			shouldReach(ctx, red, ns, ready.Status.PodIP+":8080")
			after := shouldBeReady(ctx, red, old)
			Expect(after.Status.PodIP).To(Equal(before.Status.PodIP))
			Expect(after.Status.ContainerStatuses[0].ContainerID).To(Equal(before.Status.ContainerStatuses[0].ContainerID))
		})
	}

	It("restart after the node has gone down", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		p := server(ns, "server")
		create(ctx, red, p)
		before := shouldBeReady(ctx, red, p)
		kit.Kill(super.NodePID)
		Eventually(restarts(red, p)).WithContext(ctx).WithTimeout(2 * soon).Should(BeNumerically(">=", 1))
		after := shouldBeReady(ctx, red, p)
		Expect(after.UID).To(Equal(before.UID))
		shouldReach(ctx, red, ns, after.Status.PodIP+":8080")
	})
})
