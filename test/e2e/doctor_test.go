package e2e

import (
	"bytes"
	"fmt"
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

		Eventually(func() (left []string, err error) {
			namespaces := &corev1.NamespaceList{}
			err = super.Client.List(ctx, namespaces)
			for _, ns := range namespaces.Items {
				if strings.HasPrefix(ns.Name, "vc-doctor-") {
					left = append(left, fmt.Sprintf("%s: %+v", ns.Name, ns.Status))
				}
			}
			return left, err
		}).WithContext(ctx).WithTimeout(2 * soon).Should(BeEmpty())
	}, NodeTimeout(5*soon))
})
