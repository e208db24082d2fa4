package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A connection to the address of a Service", func() {
	// A pod may start before its node knows the Services that it needs, as a
	// new tenant's DNS does.
	It("is made when the Service is there, though it was begun before", Label(smoke), func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		web, caller := server(ns, "web"), idle(ns, "caller")
		create(ctx, red, web, caller)
		web = shouldBeReady(ctx, red, web)
		shouldBeReady(ctx, red, caller)
		// Its endpoints are there before the Service is: connections to a
		// Service without endpoints are refused.
		slice := kit.EndpointSlice(ns, "web", "web", web.Status.PodIP)
		slice.Ports = []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(port))}}
		front := unselective(ns, "web")
		create(ctx, red, slice, front)
		address := serviceAddress(front)
		Eventually(connect(ctx, red, caller)).WithContext(ctx).WithArguments(address).Should(Succeed())
		Expect(red.Client.Delete(ctx, front)).To(Succeed())
		Eventually(connect(ctx, red, caller)).WithContext(ctx).WithArguments(address).Should(beRefused)

		again := unselective(ns, "web")
		again.Spec.ClusterIP = front.Spec.ClusterIP
		begun, made := make(chan struct{}), make(chan error, 1)
		go func() {
			defer GinkgoRecover()
			close(begun)
			_, err := kubectlOf(ctx, red).run(ctx, "", "exec", "-n", ns, caller.Name, "--", "/agnhost", "connect", "--timeout=60s", address)
			made <- err
		}()
		<-begun
		Consistently(made, "2s").ShouldNot(Receive(), "nothing answers yet")
		create(ctx, red, again)
		Eventually(made).WithContext(ctx).Should(Receive(Not(HaveOccurred())))
	})
})

// unselective is a Service whose endpoints are written by hand.
func unselective(ns, name string) *corev1.Service {
	s := service(ns, name)
	s.Spec.Selector = nil
	return s
}
