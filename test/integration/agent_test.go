package integration

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
	agentapp "github.com/virtualcluster/virtualcluster/vnagent/app"
)

const (
	agentNamespace = "default"
	// agentStreams is the limit of a tenant's streams in these specs.
	agentStreams = 12
)

// Everything is real except the last hop: the tenant's apiserver, the agent
// with the shipped roles, and the super cluster's apiserver.
var _ = Describe("A request to a node", Ordered, ContinueOnFailure, func() {
	var (
		red, blue *local.Tenant
		agent     *local.Agent
		kubelet   *local.Kubelet
		node      *corev1.Node
		web       *corev1.Pod
	)

	BeforeAll(func(ctx SpecContext) {
		agent = useAgent(ctx, func(o *agentapp.Options) { o.StreamsPerTenant = agentStreams })
		kubelet = local.StartKubelet()
		DeferCleanup(kubelet.Stop)
		red, blue = tenant(ctx), tenant(ctx)
		node = nodeOf(ctx, kubelet)
		web = kit.Pod(agentNamespace, "web", onNode(node))
		kit.Create(ctx, red.Client, web)
		runs(ctx, red, web)
		others := kit.Pod(agentNamespace, "others", onNode(node))
		kit.Create(ctx, blue.Client, others)
		runs(ctx, blue, others)
		kubelet.Print("first")
	})

	It("is sent to the agent, whatever addresses the node has", func(ctx SpecContext) {
		shown := &corev1.Node{}
		shown.Name = web.Spec.NodeName
		Expect(kit.Get(ctx, red.Client, shown)).To(Succeed())
		Expect(shown.Status.Addresses).To(ContainElement(corev1.NodeAddress{Type: corev1.NodeHostName, Address: "127.0.0.1"}))
		Expect(agent.Address).To(HaveSuffix(":%d", shown.Status.DaemonEndpoints.KubeletEndpoint.Port))
	}, SpecTimeout(6*kit.Soon)) // includes the setup

	It("reads a log, with the options of the client", func(ctx SpecContext) {
		Expect(logs(ctx, red, "web", &corev1.PodLogOptions{
			Previous: true, Timestamps: true, TailLines: new(int64(7)), SinceSeconds: new(int64(60)),
		})).To(HavePrefix("first\n"))
		asked := kubelet.Requests()[len(kubelet.Requests())-1]
		Expect(asked.Path).To(Equal("/containerLogs/" + red.Super(agentNamespace) + "/web/main"))
		Expect(asked.Query()).To(And(HaveKeyWithValue("previous", []string{"true"}), HaveKeyWithValue("timestamps", []string{"true"}),
			HaveKeyWithValue("tailLines", []string{"7"}), HaveKeyWithValue("sinceSeconds", []string{"60"})))
	}, SpecTimeout(2*kit.Soon))

	It("follows a log without delay", func(ctx SpecContext) {
		stream, err := clientset(red).CoreV1().Pods(agentNamespace).GetLogs("web", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		Expect(err).NotTo(HaveOccurred())
		defer stream.Close()
		lines := bufio.NewScanner(stream)
		Expect(lines.Scan()).To(BeTrue())
		Expect(lines.Text()).To(Equal("first"))
		for _, line := range []string{"second", "third"} {
			kubelet.Print(line)
			Expect(lines.Scan()).To(BeTrue(), "the stream is open, and the line is not held back")
			Expect(lines.Text()).To(Equal(line))
		}
	}, SpecTimeout(2*kit.Soon))

	It("follows a log that has no output yet", func(ctx SpecContext) {
		// The header of such a stream is sent with its first line, however long
		// that takes.
		silent := local.StartKubelet()
		DeferCleanup(silent.Stop)
		p := kit.Pod(agentNamespace, "silent", onNode(nodeOf(ctx, silent)))
		kit.Create(ctx, red.Client, p)
		runs(ctx, red, p)
		got := make(chan string, 1)
		go func() {
			defer GinkgoRecover()
			stream, err := clientset(red).CoreV1().Pods(agentNamespace).GetLogs("silent", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
			Expect(err).NotTo(HaveOccurred())
			defer stream.Close()
			line, err := bufio.NewReader(stream).ReadString('\n')
			Expect(err).NotTo(HaveOccurred())
			got <- line
		}()
		Eventually(silent.Requests).Should(HaveLen(1))
		Consistently(got).ShouldNot(Receive())
		silent.Print("at last")
		Eventually(got).Should(Receive(Equal("at last\n")))
	}, SpecTimeout(2*kit.Soon))

	for _, p := range protocols() {
		It("runs a command with input, output and exit code, over "+p.name, func(ctx SpecContext) {
			said := run(ctx, red, "web", p.executor, "hello\n", "sh", "-c", "read line; echo $line; echo oops >&2; exit 3")
			Expect(said.out).To(Equal("hello\n"))
			Expect(said.err).To(Equal("oops\n"))
			Expect(said.failure).To(HaveField("Code", 3))
		}, SpecTimeout(2*kit.Soon))
	}

	It("runs a command that transfers much in both directions", func(ctx SpecContext) {
		much := strings.Repeat("0123456789abcde\n", 1<<18) // 4 MiB, as kubectl cp would
		said := run(ctx, red, "web", remotecommand.NewSPDYExecutor, much, "cat")
		Expect(said.failure).NotTo(HaveOccurred())
		Expect(bytes.Equal([]byte(said.out), []byte(much))).To(BeTrue(), "%d bytes came back", len(said.out))
		Eventually(agent.Metric).WithArguments("vn_agent_stream_bytes_total", map[string]string{"call": "exec", "direction": "from_pod"}).
			Should(BeNumerically(">", len(much)), "the agent counts what it has sent")
	}, SpecTimeout(2*kit.Soon))

	It("attaches to a container", func(ctx SpecContext) {
		request := clientset(red).CoreV1().RESTClient().Post().Namespace(agentNamespace).Resource("pods").Name("web").SubResource("attach").
			VersionedParams(&corev1.PodAttachOptions{Stdin: true, Stdout: true, Container: "main"}, scheme.ParameterCodec)
		executor, err := remotecommand.NewSPDYExecutor(red.Config, http.MethodPost, request.URL())
		Expect(err).NotTo(HaveOccurred())
		typed, out := io.Pipe()
		heard, in := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: typed, Stdout: in})
		}()
		for _, word := range []string{"one\n", "two\n"} {
			Expect(out.Write([]byte(word))).To(Equal(len(word)))
			Expect(bufio.NewReader(heard).ReadString('\n')).To(Equal(word))
		}
		Expect(out.Close()).To(Succeed())
		Eventually(ended).Should(Receive(BeNil()), "the end of the input reaches the container")
	}, SpecTimeout(2*kit.Soon))

	It("forwards a port of a pod", func(SpecContext) {
		address, end := forward(red, "web", 8080)
		defer end()
		for range 2 {
			conn, err := net.Dial("tcp", address)
			Expect(err).NotTo(HaveOccurred())
			Expect(conn.Write([]byte("ping\n"))).To(Equal(5))
			lines := bufio.NewReader(conn)
			Expect(lines.ReadString('\n')).To(Equal("port 8080\n"))
			Expect(lines.ReadString('\n')).To(Equal("ping\n"))
			Expect(conn.Close()).To(Succeed())
		}
	}, SpecTimeout(2*kit.Soon))

	It("fails if the node does, with a message that names no object of the super cluster", func(ctx SpecContext) {
		dead := local.StartKubelet()
		node := nodeOf(ctx, dead)
		dead.Stop()
		unreached := kit.Pod(agentNamespace, "unreached", onNode(node))
		kit.Create(ctx, red.Client, unreached)
		runs(ctx, red, unreached)
		_, err := logs(ctx, red, "unreached", &corev1.PodLogOptions{})
		said := run(ctx, red, "unreached", remotecommand.NewSPDYExecutor, "", "id")
		for _, err := range []error{err, said.failure} {
			Expect(err).To(MatchError(And(ContainSubstring("the node cannot be reached now"),
				Not(ContainSubstring("127.0.0.1")), Not(ContainSubstring(red.Key())))))
		}
	}, SpecTimeout(2*kit.Soon))

	It("fails for a deleted pod, with a message in the tenant's terms", func(ctx SpecContext) {
		gone := kit.Pod(agentNamespace, "gone", onNode(node))
		kit.Create(ctx, red.Client, gone)
		copied := runs(ctx, red, gone)
		whileStopped(func() {
			Expect(ends(ctx, copied)).To(Succeed())
			_, err := logs(ctx, red, "gone", &corev1.PodLogOptions{})
			Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
			said := run(ctx, red, "gone", remotecommand.NewSPDYExecutor, "", "id")
			Expect(said.failure).To(MatchError(ContainSubstring(`pod "gone" does not exist`)))
			Expect(said.failure).NotTo(MatchError(ContainSubstring(red.Key())))
		})
	}, SpecTimeout(2*kit.Soon))

	It("is served with the certificate in the file, also after its renewal", func(ctx SpecContext) {
		ca := authorityIn(filepath.Join(super.Dir, "vn-agent", "ca.pem"))
		served, err := servedBy(ctx, agent)
		Expect(err).NotTo(HaveOccurred())
		before, err := x509.ParseCertificate(served)
		Expect(err).NotTo(HaveOccurred())
		renewed, err := ca.Server("vn-agent", before.DNSNames, before.IPAddresses, 24*time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		block, _ := pem.Decode(renewed.CertPEM)
		Expect(served).NotTo(Equal(block.Bytes))
		file := filepath.Join(super.Dir, "vn-agent", "server.pem")
		Expect(os.WriteFile(file+".new", slices.Concat(renewed.CertPEM, renewed.KeyPEM), 0o600)).To(Succeed())
		Expect(os.Rename(file+".new", file)).To(Succeed())
		Eventually(servedBy).WithContext(ctx).WithArguments(agent).Should(Equal(block.Bytes))
		Expect(logs(ctx, red, "web", &corev1.PodLogOptions{})).To(HavePrefix("first\n"), "the tenant's apiserver accepts it")
	}, SpecTimeout(2*kit.Soon))

	Context("sent directly, with a certificate", func() {
		It("is accepted for the tenant's own pods", func(ctx SpecContext) {
			Expect(ask(ctx, agent, certificateOf(red), "/containerLogs/default/web/main")).To(answer(http.StatusOK, HavePrefix("first")))
			Expect(ask(ctx, agent, certificateOf(red), "/healthz")).To(answer(http.StatusOK, Equal("ok")))
			uid := string(web.UID)
			Expect(ask(ctx, agent, certificateOf(red), "/exec/default/web/"+uid+"/main?output=1&command=id")).
				To(answer(http.StatusBadRequest, ContainSubstring("pgrade")), "it reaches the super cluster, which expects an upgrade")
		}, SpecTimeout(2*kit.Soon))

		It("is rejected for another tenant's pods, whatever the path", func(ctx SpecContext) {
			namespace := blue.Super(agentNamespace)
			for _, path := range []string{
				"/containerLogs/default/others/main",
				"/containerLogs/" + namespace + "/others/main",
				"/containerLogs/" + strings.TrimPrefix(namespace, red.Key()+"-") + "/others/main",
				"/containerLogs/kube-system/others/main",
				"/exec/default/web/" + string(web.UID) + "x/main?output=1&command=id",
			} {
				Expect(ask(ctx, agent, certificateOf(red), path)).To(answer(http.StatusNotFound, MatchRegexp(`^pod ".+" does not exist`)), path)
			}
			asked := len(kubelet.Requests())
			for _, path := range []string{
				"/containerLogs/default%2F..%2F" + namespace + "/others/main",
				"/containerLogs/default/..%2f..%2f" + namespace + "%2fpods%2fothers/main",
				"/containerLogs/../namespaces/kube-system/secrets",
				"/containerLogs/default/web/main/",
				"/containerLogs//web/main",
				"/run/default/web/main?cmd=id",
				"/pods", "/metrics", "/api/v1/namespaces/kube-system/secrets",
			} {
				Expect(ask(ctx, agent, certificateOf(red), path)).To(answer(http.StatusNotFound, ContainSubstring("and nothing else")), path)
			}
			Expect(kubelet.Requests()).To(HaveLen(asked))
		}, SpecTimeout(2*kit.Soon))

		It("ignores headers with another identity", func(ctx SpecContext) {
			// Headers that the super cluster's apiserver would interpret.
			Expect(ask(ctx, agent, certificateOf(red), "/containerLogs/default/web/main",
				"Impersonate-User", "system:admin", "Authorization", "Bearer nonsense", "X-Remote-User", "system:admin",
			)).To(answer(http.StatusOK, HavePrefix("first")))
		}, SpecTimeout(2*kit.Soon))

		It("is rejected with certificates of other authorities", func(ctx SpecContext) {
			for what, minted := range map[string]tls.Certificate{
				"by the tenant's API": mintedBy(ctx, red),
				"by the tenant's CA":  signedBy(authorityIn(super.PKIFile(red.Key(), "ca.pem")), time.Hour),
				"by the super's CA":   signedBy(authorityIn(super.PKIFile("super", "ca.pem")), time.Hour),
				"the admin's":         pairIn(super.PKIFile(red.Key(), "admin.pem")),
			} {
				_, err := ask(ctx, agent, minted, "/containerLogs/default/web/main")
				Expect(err).To(MatchError(ContainSubstring("bad certificate")), what)
			}
			Expect(agent.Metric("vn_agent_refused_certificates_total", map[string]string{"reason": "unknown"})).To(BeNumerically(">=", 4))
		}, SpecTimeout(2*kit.Soon))

		It("is rejected with an expired certificate", func(ctx SpecContext) {
			var short tls.Certificate
			Eventually(func() (local.Reply, error) { // it may have expired before it is used
				short = signedBy(authorityIn(super.PKIFile(red.Key(), "kubelet-client-ca.pem")), 2*time.Second)
				return ask(ctx, agent, short, "/healthz")
			}).Should(answer(http.StatusOK, Equal("ok")))
			Eventually(func() error {
				_, err := ask(ctx, agent, short, "/healthz")
				return err
			}).Should(MatchError(ContainSubstring("bad certificate")))
			Expect(agent.Metric("vn_agent_refused_certificates_total", map[string]string{"reason": "expired"})).To(BeNumerically(">=", 1))
		}, SpecTimeout(2*kit.Soon))

		It("follows the renewal of an authority, on open connections too", func(ctx SpecContext) {
			old, renewed := newAuthority(), newAuthority()
			ghost := ghost(ctx)
			publish(ctx, ghost, old)
			open := local.ClientWithCertificate(signedBy(old, time.Hour))
			defer open.CloseIdleConnections()
			healthz := func() (local.Reply, error) { return local.Ask(ctx, open, agent.Address, "/healthz") }
			Eventually(healthz).Should(answer(http.StatusOK, Equal("ok")))

			publish(ctx, ghost, renewed)
			Eventually(healthz).Should(answer(http.StatusUnauthorized, ContainSubstring("not accepted: unknown")))
			Expect(ask(ctx, agent, signedBy(renewed, time.Hour), "/healthz")).To(answer(http.StatusOK, Equal("ok")))

			publish(ctx, ghost, authorityIn(super.PKIFile(red.Key(), "kubelet-client-ca.pem")))
			asRed := func() error {
				_, err := ask(ctx, agent, certificateOf(red), "/healthz")
				return err
			}
			Eventually(asRed).Should(MatchError(ContainSubstring("bad certificate")), "one authority does not identify two tenants")
			publish(ctx, ghost, renewed)
			Eventually(asRed).Should(Succeed())
		}, SpecTimeout(2*kit.Soon))
	})

	It("is rejected beyond a tenant's limit of streams, which does not affect others", func(ctx SpecContext) {
		var open []func()
		for range agentStreams {
			_, end := forward(red, "web", 80)
			open = append(open, end)
		}
		more := func(t *local.Tenant, name string) error {
			_, err := logs(ctx, t, name, &corev1.PodLogOptions{})
			return err
		}
		Expect(more(red, "web")).To(MatchError(apierrors.IsTooManyRequests, "too many"))
		said := run(ctx, red, "web", remotecommand.NewSPDYExecutor, "", "id")
		Expect(said.failure).To(MatchError(ContainSubstring("has 12 streams open already")))
		Expect(more(blue, "others")).To(Succeed())
		open[0]()
		Eventually(more).WithArguments(red, "web").Should(Succeed(), "one has ended")
		for _, end := range open[1:] {
			end()
		}
	}, SpecTimeout(2*kit.Soon))

	It("is rejected beyond a tenant's limit of connections, which does not affect others", func(ctx SpecContext) {
		asks := func(c *http.Client) error {
			_, err := local.Ask(ctx, c, agent.Address, "/healthz")
			return err
		}
		var open []*http.Client
		Eventually(func() error {
			c := local.ClientWithCertificate(certificateOf(red)) // each has a connection of its own, which it keeps open
			open = append(open, c)
			return asks(c)
		}).Should(Not(Succeed()))
		Expect(len(open)).To(BeNumerically("<=", 2*agentStreams+1))
		others := local.ClientWithCertificate(certificateOf(blue))
		defer others.CloseIdleConnections()
		Expect(asks(others)).To(Succeed())
		for _, c := range open {
			c.CloseIdleConnections()
		}
		again := local.ClientWithCertificate(certificateOf(red))
		defer again.CloseIdleConnections()
		Eventually(asks).WithArguments(again).Should(Succeed())
	}, SpecTimeout(2*kit.Soon))
})
