package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A connection to the address of a Service", func() {
	// A pod may start before its node knows the Services that it needs, as a new tenant's DNS does.
	It("is made when the Service is there, though it was begun before", Label(smoke), func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		web, front, caller := server(ns, "web"), service(ns, "web"), idle(ns, "caller")
		create(ctx, red, web, front, caller)
		shouldBeReady(ctx, red, web)
		shouldBeReady(ctx, red, caller)
		address := serviceAddress(front)
		Eventually(connect(ctx, red, caller)).WithContext(ctx).WithArguments(address).Should(Succeed())
		Expect(red.Client.Delete(ctx, front)).To(Succeed())
		Eventually(connect(ctx, red, caller)).WithContext(ctx).WithArguments(address).Should(beRefused)

		again := service(ns, "web")
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
