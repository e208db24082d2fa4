package e2e

import (
	"bytes"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/virtualcluster/virtualcluster/cli/command"
)

var _ = Describe("kubectl vc doctor --probe", func() {
	It("proves by connections of pods that NetworkPolicies are enforced", func(ctx SpecContext) {
		out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
		command.Main(ctx, streams, []string{
			"doctor", "--kubeconfig=" + filepath.Join(super.Dir, "super.kubeconfig"), "--probe", "--probe-image=kubectl-vc:latest",
			`-o=jsonpath={range .checks[?(@.name=="network-policies")]}{.verdict}: {.message}{end}`,
		})
		Expect(out.String()).To(Equal("OK: enforced, for ingress and egress"), errOut.String())

		Eventually(func(g Gomega) {
			namespaces := &corev1.NamespaceList{}
			g.Expect(super.Client.List(ctx, namespaces)).To(Succeed())
			g.Expect(namespaces.Items).NotTo(ContainElement(HaveField("Name", HavePrefix("vc-doctor-"))))
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(4*soon))
})
