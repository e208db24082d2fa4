package escapes

import (
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The node of a pod", Ordered, func() {
	const ns = "node"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a privileged container", "peers: CAPN limits no privileged pods", func(ctx SpecContext) {
		p := kit.Pod(ns, "privileged", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, `violates PodSecurity "baseline:latest"`)
	})

	attack("the node's network", "peers: CAPN limits no host network", func(ctx SpecContext) {
		p := kit.Pod(ns, "network", func(p *corev1.Pod) { p.Spec.HostNetwork = true })
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, "spec.hostNetwork: Forbidden")
	})

	attack("a directory of the node", "peers: CAPN limits no host paths", func(ctx SpecContext) {
		p := kit.Pod(ns, "files", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{
				Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
			}}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, "spec.volumes[0].hostPath: Forbidden")
	})

	attack("a node named past the scheduler", "Kubernetes documentation: Assigning Pods to Nodes, nodeName", func(ctx SpecContext) {
		p := kit.Pod(ns, "named", func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, "spec.nodeName: Forbidden")
	})
})
