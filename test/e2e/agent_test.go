package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// Requests that a tenant's apiserver would never send are sent here directly,
// with certificates that are in the data directory.
var _ = Describe("What answers for the node of a tenant's pods", Ordered, func() {
	const line = "red's own\n"
	var (
		agent         string
		asRed, asBlue *http.Client
		p             *corev1.Pod
	)
	logsAt := func(ns, name string) string { return fmt.Sprintf("/containerLogs/%s/%s/main", ns, name) }

	BeforeAll(func(ctx SpecContext) {
		p = pod(newNamespace(ctx, red), "writer", busybox, "sh", "-c", "echo \"red's own\"; sleep 3600")
		create(ctx, red, p)
		agent = agentOf(ctx, red, shouldBeReady(ctx, red, p))
		asRed, asBlue = apiserverOf(red), apiserverOf(blue)
		Eventually(local.Ask).WithContext(ctx).WithArguments(asRed, agent, logsAt(p.Namespace, p.Name)).Should(answer(http.StatusOK, Equal(line)))
	})

	It("says that a pod is gone", func(ctx SpecContext) {
		gone := pod(p.Namespace, "gone", busybox, "sleep", "3600")
		create(ctx, red, gone)
		shouldBeReady(ctx, red, gone)
		Expect(local.Ask(ctx, asRed, agent, logsAt(gone.Namespace, gone.Name))).To(HaveField("Code", http.StatusOK))
		Expect(red.Client.Delete(ctx, gone)).To(Succeed())
		Eventually(get).WithContext(ctx).WithArguments(red, gone).Should(beNotFound)
		for _, path := range []string{
			logsAt(gone.Namespace, gone.Name), "/exec/" + gone.Namespace + "/gone/main?output=1&command=id",
			"/attach/" + gone.Namespace + "/gone/main?output=1", "/portForward/" + gone.Namespace + "/gone",
		} {
			Expect(local.Ask(ctx, asRed, agent, path)).To(answer(http.StatusNotFound, Equal("pod \"gone\" does not exist\n")), path)
		}
	})

	It("shows nothing of a pod to another tenant, however that calls it", func(ctx SpecContext) {
		super := red.Super(p.Namespace)
		for _, path := range []string{logsAt(p.Namespace, p.Name), logsAt(super, p.Name)} {
			Expect(local.Ask(ctx, asBlue, agent, path)).To(answer(http.StatusNotFound, ContainSubstring("does not exist")), path)
		}
		for _, path := range []string{
			logsAt("default%2F..%2F"+super, p.Name), logsAt("default", "..%2F..%2F"+super+"%2Fpods%2F"+p.Name),
			logsAt("..", p.Name), logsAt("default", p.Name+"%00"), "/containerLogs/default/../../" + super + "/writer/main",
		} {
			Expect(local.Ask(ctx, asBlue, agent, path)).To(answer(http.StatusNotFound, ContainSubstring("and nothing else")), path)
		}
	})

	It("ends the handshake with clients other than tenants' apiservers", func(ctx SpecContext) {
		for what, file := range map[string]string{
			"a user of the tenant": super.PKIFile(red.Key(), "admin.pem"),
			"the super cluster's":  super.PKIFile("super", "kubelet-client.pem"),
		} {
			_, err := local.Ask(ctx, showing(file), agent, "/healthz")
			Expect(err).To(MatchError(ContainSubstring("bad certificate")), what)
		}
	})

	It("ends the handshake with a certificate that has expired", func(ctx SpecContext) {
		ca, err := local.ReadAuthority(super.PKIFile(red.Key(), "kubelet-client-ca.pem"))
		Expect(err).NotTo(HaveOccurred())
		certificate, err := local.KubeletClient(ca, 2*time.Second)
		Expect(err).NotTo(HaveOccurred())
		healthz := func(ctx context.Context) (local.Reply, error) {
			anew := local.ClientWithCertificate(certificate)
			defer anew.CloseIdleConnections()
			return local.Ask(ctx, anew, agent, "/healthz")
		}
		Expect(healthz(ctx)).To(answer(http.StatusOK, Equal("ok")))
		Eventually(func(ctx context.Context) error { _, err := healthz(ctx); return err }).WithContext(ctx).
			Should(MatchError(ContainSubstring("bad certificate")))
	})
})

// agentOf is where the apiserver of a tenant asks for what is of the node of a pod.
func agentOf(ctx context.Context, t *local.Tenant, p *corev1.Pod) string {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(t.Client.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, node)).To(Succeed())
	i := slices.IndexFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeHostName })
	Expect(i).NotTo(Equal(-1), "%v", node.Status.Addresses)
	return net.JoinHostPort(node.Status.Addresses[i].Address, fmt.Sprint(node.Status.DaemonEndpoints.KubeletEndpoint.Port))
}

// apiserverOf is a client that poses as a tenant's apiserver.
func apiserverOf(t *local.Tenant) *http.Client {
	GinkgoHelper()
	return showing(super.PKIFile(t.Key(), "kubelet-client.pem"))
}

// showing is a client that shows the certificate in a file.
func showing(file string) *http.Client {
	GinkgoHelper()
	certificate, err := local.ReadPair(file)
	Expect(err).NotTo(HaveOccurred())
	c := local.ClientWithCertificate(certificate)
	DeferCleanup(c.CloseIdleConnections)
	return c
}

// answer matches what an agent says.
func answer(code int, body gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return And(HaveField("Code", code), HaveField("Body", body))
}
