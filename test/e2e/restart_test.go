package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Specs that take the node from under others run alone.
var _ = Describe("A tenant's pods", Serial, func() {
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		It("run on while "+name+" is restarted, and new ones come after it", func(ctx SpecContext) {
			ns := newNamespace(ctx, red)
			old := server(ns, "old")
			create(ctx, red, old)
			before := shouldBeReady(ctx, red, old)
			kill(program(name))
			p := server(ns, "new")
			create(ctx, red, p)
			ready := shouldBeReady(ctx, red, p)
			shouldReach(ctx, red, ns, ready.Status.PodIP+":8080")
			after := shouldBeReady(ctx, red, old)
			Expect(after.Status.PodIP).To(Equal(before.Status.PodIP))
			Expect(after.Status.ContainerStatuses[0].ContainerID).To(Equal(before.Status.ContainerStatuses[0].ContainerID))
		})
	}

	It("start anew after the node has gone down", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		p := server(ns, "server")
		create(ctx, red, p)
		before := shouldBeReady(ctx, red, p)
		kill(node)
		Eventually(restarts(red, p)).WithContext(ctx).WithTimeout(2 * soon).Should(BeNumerically(">=", 1))
		after := shouldBeReady(ctx, red, p)
		Expect(after.UID).To(Equal(before.UID))
		shouldReach(ctx, red, ns, after.Status.PodIP+":8080")
	})
})

var _ = Describe("A tenant that is deleted while its pods run", func() {
	It("leaves nothing", func(ctx SpecContext) {
		leaving := newTenant(ctx, "leaving")
		for _, name := range []string{"one", "two"} {
			p := server("default", name)
			Eventually(leaving.Client.Create).WithContext(ctx).WithArguments(p).Should(Succeed(), "when there is a service account")
			shouldBeReady(ctx, leaving, p)
		}
		before := len(shims())
		Expect(super.Client.Delete(ctx, leaving.VC)).To(Succeed())
		Eventually(func(ctx context.Context) error {
			return super.Client.Get(ctx, client.ObjectKeyFromObject(leaving.VC), leaving.VC)
		}).WithContext(ctx).WithTimeout(2 * soon).Should(beNotFound)
		left := &corev1.NamespaceList{}
		Expect(super.Client.List(ctx, left, client.MatchingLabels{names.VCName: leaving.VC.Name})).To(Succeed())
		Expect(left.Items).To(BeEmpty())
		Eventually(func() int { return len(shims()) }).WithContext(ctx).Should(BeNumerically("<=", before-2))
	})
})

// shims are the processes that hold pods: one for each.
func shims() []process {
	var found []process
	one := node()
	for _, p := range processes() {
		if p.parent == one && p.name == "containerd-shim" {
			found = append(found, p)
		}
	}
	return found
}
