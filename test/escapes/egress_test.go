package escapes

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	cve8562 = "CVE-2020-8562: the proxy to a node checks a name and connects to another address"
	cve8555 = "CVE-2020-8555: requests forged on behalf of the control plane"
	cve8559 = "CVE-2020-8559: a redirect that is followed with the control plane's rights"
	review  = "review: hosted apiservers run in the platform's process"
)

// Each attack has a listener where the platform could have one, and says in
// some object that it is the tenant's.
var _ = Describe("The network of the platform, through a hosted apiserver", Ordered, ContinueOnFailure, func() {
	var (
		mallory  *local.Tenant
		loopback *listener // of which upstream knows that it is not for tenants, at some places
		machine  *listener // of which it does not
	)

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, kit.WithIsolation(tenancyv1alpha1.IsolationDedicated))
		kit.Create(ctx, mallory.Client, kit.Namespace(egressNamespace))
		loopback = listen("127.0.0.1:0", nil)
		machine = listen(kit.MachineAddress()+":0", nil)
	})
	AfterEach(func() {
		loopback.shouldBeUntouched()
		machine.shouldBeUntouched()
	})

	Context("by webhooks", func() {
		refusedURL := func(text, source string, url func() string) {
			attack(text, source, func(ctx SpecContext) { shouldNotBeAllowed(rejection(ctx, mallory, at(url()))) })
		}
		refusedURL("a webhook at a loopback address", cve8555, func() string { return "https://" + loopback.String() })
		refusedURL("a webhook at a name of loopback", cve8555, func() string { return fmt.Sprintf("https://localhost:%d", loopback.Port()) })
		refusedURL("a webhook at a loopback address as IPv6", cve8555, func() string { return fmt.Sprintf("https://[::ffff:127.0.0.1]:%d", loopback.Port()) })
		refusedURL("a webhook at a loopback address behind NAT64", review, func() string { return fmt.Sprintf("https://[64:ff9b::7f00:1]:%d", loopback.Port()) })
		refusedURL("a webhook at the unspecified address", review, func() string { return fmt.Sprintf("https://0.0.0.0:%d", loopback.Port()) })
		refusedURL("a webhook at the platform's machine", cve8555, func() string { return "https://" + machine.String() })
		refusedURL("a webhook at the metadata of the cloud", cve8555, func() string { return "https://169.254.169.254/latest/meta-data" })
		refusedURL("a webhook at the super cluster's apiserver", review, func() string { return super.Config.Host + "/api/v1/secrets" })
		refusedURL("a webhook at a node of the super cluster", review, func() string { return "https://" + nodeAddress() + ":10250" })
		refusedURL("a webhook outside of what the admin allows", review, func() string { return "https://203.0.113.7" })

		attack("a webhook whose Service leads to the platform's machine", cve8555, func(ctx SpecContext) {
			leadTo(ctx, mallory, "machine", machine.AddrPort)
			shouldNotBeAllowed(rejection(ctx, mallory, served("machine", "/", machine.ca)))
		})

		attack("a conversion webhook at a loopback address", cve8555, func(ctx SpecContext) {
			shouldNotBeAllowed(conversion(ctx, mallory, "loopback.example.com", apiextensionsv1.WebhookClientConfig{URL: new("https://" + loopback.String())}))
		})
	})

	Context("by aggregated APIs", func() {
		attack("an aggregated API that is an external name of loopback", review, func(ctx SpecContext) {
			externalName(ctx, mallory, "outer", "127.0.0.1")
			shouldBeUnavailable(ctx, mallory, aggregate(ctx, mallory, "outer.example.com", "outer", loopback.port()))
		})

		attack("an aggregated API whose Service leads to the platform's machine", review, func(ctx SpecContext) {
			leadTo(ctx, mallory, "api", machine.AddrPort)
			shouldBeUnavailable(ctx, mallory, aggregate(ctx, mallory, "inner.example.com", "api", 443))
		})

		attack("an aggregated API that the tenant itself calls available", review, func(ctx SpecContext) {
			externalName(ctx, mallory, "called", "127.0.0.1")
			api := aggregate(ctx, mallory, "called.example.com", "called", loopback.port())
			shouldBeUnavailable(ctx, mallory, api)
			for _, upgrade := range []string{"", "SPDY/3.1", "websocket"} {
				Eventually(func(ctx context.Context) error {
					if err := callAvailable(ctx, mallory, api); err != nil {
						return err
					}
					return ask(ctx, mallory, "/apis/called.example.com/v1/things", upgrade)
				}).WithContext(ctx).Should(MatchError(Or(
					ContainSubstring(notAllowed),
					ContainSubstring("is not available"), // the condition is false again before the request
				)), upgrade)
			}
		})
	})

	Context("by nodes", func() {
		BeforeAll(func(ctx SpecContext) {
			ownNode(ctx, mallory, "own", machine)
			p := kit.Pod(egressNamespace, "on-own-node", func(p *corev1.Pod) { p.Spec.NodeName = "own" })
			kit.Create(ctx, mallory.Client, p)
		})

		attack("the proxy to a node that the tenant has made", cve8562, func(ctx SpecContext) {
			for _, upgrade := range []string{"", "websocket"} {
				shouldNotBeAllowed(ask(ctx, mallory, "/api/v1/nodes/own/proxy/metrics", upgrade))
			}
		})

		attack("the proxy to another port of a node that the tenant has made", cve8562, func(ctx SpecContext) {
			ownNode(ctx, mallory, "closed", machine, func(n *corev1.Node) { n.Status.DaemonEndpoints.KubeletEndpoint.Port = 1 })
			for _, upgrade := range []string{"", "websocket"} {
				shouldNotBeAllowed(ask(ctx, mallory, fmt.Sprintf("/api/v1/nodes/https:closed:%d/proxy/metrics", machine.Port()), upgrade))
			}
		})

		attack("the proxy to a node whose status is rewritten", cve8562, func(ctx SpecContext) {
			p := kit.Pod(egressNamespace, "anywhere")
			kit.Create(ctx, mallory.Client, p)
			Eventually(kit.Read(ctx, mallory.Client, p)).Should(HaveField("Spec.NodeName", Not(BeEmpty())))
			Expect(kit.Get(ctx, mallory.Client, p)).To(Succeed())
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.NodeName}}
			Eventually(func(ctx context.Context) error {
				if err := kit.Get(ctx, mallory.Client, node); err != nil {
					return err
				}
				setKubelet(node, machine)
				if err := mallory.Client.Status().Update(ctx, node); err != nil {
					return err
				}
				return ask(ctx, mallory, "/api/v1/nodes/"+node.Name+"/proxy/metrics", "")
			}).WithContext(ctx).Should(MatchError(ContainSubstring(notAllowed)))
		})

		attack("logs of a pod on a node that the tenant has made", cve8562, func(ctx SpecContext) {
			shouldNotBeAllowed(ask(ctx, mallory, podPath("on-own-node", "log"), ""))
		})

		attack("exec, attach and port-forward on a node that the tenant has made", cve8562, func(ctx SpecContext) {
			for _, call := range []string{"exec?command=id&stdout=1", "attach?stdout=1", "portforward?ports=80"} {
				shouldNotBeAllowed(ask(ctx, mallory, podPath("on-own-node", call), "SPDY/3.1"))
			}
		})

		attack("exec by WebSocket on a node that the tenant has made", cve8562, func(ctx SpecContext) {
			where, err := url.Parse(mallory.Config.Host + podPath("on-own-node", "exec?command=id&stdout=1"))
			Expect(err).NotTo(HaveOccurred())
			executor, err := remotecommand.NewWebSocketExecutor(mallory.Config, http.MethodGet, where.String())
			Expect(err).NotTo(HaveOccurred())
			shouldNotBeAllowed(executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: GinkgoWriter}))
		})
	})

	Context("by pods and Services", func() {
		BeforeAll(func(ctx SpecContext) {
			p := kit.Pod(egressNamespace, "addressed", func(p *corev1.Pod) { p.Spec.NodeName = "none" }) // not synced down, so its status stays
			kit.Create(ctx, mallory.Client, p)
			was := p.DeepCopy()
			p.Status.PodIP, p.Status.PodIPs = machine.Addr().String(), []corev1.PodIP{{IP: machine.Addr().String()}}
			Expect(mallory.Client.Status().Patch(ctx, p, client.MergeFrom(was))).To(Succeed())
		})

		attack("the proxy to a pod whose address the tenant has written", cve8562, func(ctx SpecContext) {
			for _, upgrade := range []string{"", "SPDY/3.1", "websocket"} {
				shouldNotBeAllowed(ask(ctx, mallory, podPath(fmt.Sprintf("https:addressed:%d", machine.Port()), "proxy/"), upgrade))
			}
		})

		attack("the proxy to a Service whose endpoints the tenant has written", cve8555, func(ctx SpecContext) {
			kit.Create(ctx, mallory.Client, &corev1.Endpoints{ //nolint:staticcheck // the proxy reads no slices
				ObjectMeta: metav1.ObjectMeta{Namespace: egressNamespace, Name: "written"},
				Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // as above
					Addresses: []corev1.EndpointAddress{{
						IP: machine.Addr().String(), TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: egressNamespace, Name: "addressed"},
					}},
					Ports: []corev1.EndpointPort{{Name: "https", Port: machine.port()}},
				}},
			})
			for _, upgrade := range []string{"", "websocket"} {
				shouldNotBeAllowed(ask(ctx, mallory, "/api/v1/namespaces/"+egressNamespace+"/services/https:written:https/proxy/", upgrade))
			}
		})
	})

	Context("by what it may reach", Ordered, func() {
		var (
			backs *listener
			turn  atomic.Value // of type http.HandlerFunc

			converted int
		)

		BeforeAll(func(ctx SpecContext) {
			kit.UsePodNetwork(ctx)
			answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { turn.Load().(http.HandlerFunc)(w, r) })
			backs = listen(kit.NextPodAddress()+":0", answer)
			backend(ctx, mallory, "backend", backs.Addr().String())
			plain := listenPlain(kit.NextPodAddress()+":0", answer)
			backend(ctx, mallory, "plain", plain.Addr().String(), func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: plain.port()}}
			})
			leadTo(ctx, mallory, "backend", backs.AddrPort)
		})
		BeforeEach(func() { turn.Store(http.NotFoundHandler()) })
		redirectTo := func(url string) {
			turn.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, url, http.StatusTemporaryRedirect)
			}))
		}

		// webhooks are those of admission and of conversions, in which the backend's
		// answer is an error.
		webhooks := func() []func(context.Context) error {
			converted++
			group := fmt.Sprintf("converted-%d.example.com", converted)
			return []func(context.Context) error{
				func(ctx context.Context) error { return rejection(ctx, mallory, served("backend", "/", backs.ca)) },
				func(ctx context.Context) error {
					return conversion(ctx, mallory, group, apiextensionsv1.WebhookClientConfig{
						Service:  &apiextensionsv1.ServiceReference{Namespace: egressNamespace, Name: "backend"},
						CABundle: backs.ca,
					})
				},
			}
		}

		It("reaches the tenant's own pods", func(ctx SpecContext) {
			err := rejection(ctx, mallory, served("backend", "/", backs.ca))
			Expect(err).To(MatchError(ContainSubstring("could not find the requested resource")), "as the backend says")
			Expect(backs.connected()).To(BeNumerically(">", 0))
			Expect(ask(ctx, mallory, podPath(fmt.Sprintf("https:backend:%d", backs.Port()), "proxy/"), "")).
				To(MatchError(ContainSubstring("404 page not found")))
		})

		attack("a webhook that answers with a redirect to loopback", cve8559, func(ctx SpecContext) {
			for _, host := range []string{loopback.String(), fmt.Sprintf("localhost:%d", loopback.Port())} {
				redirectTo("https://" + host)
				shouldNotBeAllowed(rejection(ctx, mallory, served("backend", "/", backs.ca)))
			}
		})

		attack("answers of webhooks that never end", "idea: upstream's client reads an answer as a whole", func(ctx SpecContext) {
			const most = 100 // megabytes, some of which are on their way
			var sent atomic.Int32
			for _, webhook := range webhooks() {
				sent.Store(0)
				turn.Store(endlessAnswer(&sent))
				Expect(webhook(ctx)).To(MatchError(ContainSubstring("answers with more than")))
				Expect(sent.Load()).To(BeNumerically("<", most))
			}
		})

		attack("answers of webhooks in protobuf, also if they are called JSON", "idea: upstream's decoder looks at what it gets", func(ctx SpecContext) {
			for _, mediaType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
				turn.Store(answerWith(mediaType, reviewInProtobuf()))
				for _, webhook := range webhooks() {
					Expect(webhook(ctx)).To(MatchError(ContainSubstring("answers in protobuf")))
				}
			}
		})

		attack("answers of webhooks that are nested 9,000 deep", "idea: the limit of requests is not that of answers", func(ctx SpecContext) {
			turn.Store(answerWith("application/json", []byte(strings.Repeat(`{"a":`, 9_000)+"0"+strings.Repeat("}", 9_000))))
			for _, webhook := range webhooks() {
				Expect(webhook(ctx)).To(MatchError(ContainSubstring("nested deeper")))
			}
		})

		attack("definitions that the patches of webhooks nest 9,000 deep", "idea: a patch is text in an answer", func(ctx SpecContext) {
			for _, patch := range nestingPatches("/spec/versions/0/schema/openAPIV3Schema/not") {
				turn.Store(patchWith(patch))
				Expect(mutation(ctx, mallory, served("backend", "/", backs.ca))).To(MatchError(ContainSubstring("nested deeper than 1000 levels")))
			}
		})

		attack("definitions that the patches of webhooks copy into themselves", "idea: each copy doubles the object", func(ctx SpecContext) {
			turn.Store(patchWith(copies()))
			Expect(mutation(ctx, mallory, served("backend", "/", backs.ca))).To(MatchError(ContainSubstring("accumulated size increase of copy")))
		})

		attack("definitions that the patches of webhooks change 10,001 times", "idea: each insert moves what was inserted before", func(ctx SpecContext) {
			turn.Store(patchWith(inserts()))
			Expect(mutation(ctx, mallory, served("backend", "/", backs.ca))).To(MatchError(ContainSubstring("the patch has 10001 operations")))
		})

		attack("a webhook that the apiserver serves itself and that a pod redirects to loopback", cve8559, func(ctx SpecContext) {
			const group = "redirects.example.com"
			turn.Store(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			shouldBecomeAvailable(ctx, mallory, aggregate(ctx, mallory, group, "backend", 443))
			redirectTo("https://" + loopback.String())
			for path, answer := range map[string]string{
				"/apis/" + group + "/v1/reviews": "redirect", podPath("plain", "proxy/turn"): "has to be an aggregated API",
			} {
				itself := served("kubernetes", path, nil)
				itself.Service.Namespace = metav1.NamespaceDefault
				Expect(rejection(ctx, mallory, itself)).To(MatchError(ContainSubstring(answer)))
				Expect(rejection(ctx, mallory, at("https://kubernetes.default.svc"+path))).To(MatchError(ContainSubstring(answer)))
			}
		})

		attack("another tenant's pod", review, func(ctx SpecContext) {
			others := kit.NextPodAddress()
			victim := tenant(ctx)
			kit.Create(ctx, victim.Client, kit.Namespace(egressNamespace))
			its := listen(others+":0", nil)
			backend(ctx, victim, "secret", others)
			leadTo(ctx, mallory, "others", its.AddrPort)
			shouldNotBeAllowed(rejection(ctx, mallory, served("others", "/", its.ca)))
			its.shouldBeUntouched()
		})

		attack("an address that a pod of the tenant had before it ended", review, func(ctx SpecContext) {
			had := kit.NextPodAddress()
			next := listen(had+":0", nil)
			copied := backend(ctx, mallory, "ended", had)
			leadTo(ctx, mallory, "ended", next.AddrPort)
			kit.SetPodStatus(ctx, super.Client, copied, func(s *corev1.PodStatus) { s.Phase = corev1.PodSucceeded })
			Eventually(kit.Read(ctx, mallory.Client, kit.Pod(egressNamespace, "ended"))).Should(HaveField("Status.Phase", corev1.PodSucceeded))
			shouldNotBeAllowed(rejection(ctx, mallory, served("ended", "/", next.ca)))
			next.shouldBeUntouched()
		})

		attack("an address that a pod of the tenant and another's have both", review, func(ctx SpecContext) {
			shared := kit.NextPodAddress()
			its := listen(shared+":0", nil)
			backend(ctx, mallory, "shared", shared)
			leadTo(ctx, mallory, "shared", its.AddrPort)
			platform := kit.Pod(metav1.NamespaceDefault, "of-the-platform")
			kit.Create(ctx, super.Client, platform)
			DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, platform)).To(Succeed()) })
			kit.SetPodAddress(ctx, super, platform, shared)
			shouldNotBeAllowed(rejection(ctx, mallory, served("shared", "/", its.ca)))
			its.shouldBeUntouched()
		})
	})
})

// podPath is the path of a subresource of a pod.
func podPath(name, subresource string) string {
	return "/api/v1/namespaces/" + egressNamespace + "/pods/" + name + "/" + subresource
}

// nodeAddress is an address of a node of the super cluster.
func nodeAddress() string {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(super.Client.List(context.Background(), nodes)).To(Succeed())
	for _, node := range nodes.Items {
		for _, a := range node.Status.Addresses {
			if _, err := netip.ParseAddr(a.Address); err == nil && !strings.HasPrefix(a.Address, "127.") {
				return a.Address
			}
		}
	}
	Fail("no node has an address")
	return ""
}
