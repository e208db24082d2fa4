package networks

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("Pods know the names of their own network, and those of their apiserver", Label(smoke), func(ctx SpecContext) {
	const namespace = "names"
	newNamespace(ctx, red, namespace)
	members := []*member{join(ctx, red, open, namespace), join(ctx, red, closed, namespace)}
	for i, m := range members {
		m.shouldRun(ctx)
		other := members[1-i]
		own := endpoint{"name", "http", m.service.Name + "." + namespace, serviceTCP}
		Eventually(m.reaches).WithContext(ctx).WithArguments(own).Should(BeTrue(), "%s reaches %s", m, own.host)
		for host, known := range map[string]bool{
			other.service.Name + "." + namespace + ".svc.cluster.local": false,
			m.service.Name + "." + namespace + ".svc.cluster.local":     true,
			"kubernetes.default": true,
		} {
			to := endpoint{"name", "http", host, serviceTCP}
			unknown := HaveField("Errors", ContainElement(ContainSubstring("no such host")))
			if known {
				Expect(m.connect(ctx, to)).NotTo(unknown, "%s knows %s", m, host)
			} else { // an answer may come too late
				Eventually(m.connect).WithContext(ctx).WithArguments(to).Should(unknown, "%s does not know %s", m, host)
			}
		}
	}
})
