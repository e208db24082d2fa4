package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The attacks of test/escapes that take a real network: red tries to reach a
// server of blue's, which its pods do not reach directly.
var _ = Describe("A hostile tenant on a real node", Ordered, ContinueOnFailure, func() {
	const nodePort = 31777
	var (
		ns     string
		caller *corev1.Pod
		target *corev1.Pod
	)

	BeforeAll(func(ctx SpecContext) {
		target = server(newNamespace(ctx, blue), "target")
		create(ctx, blue, target)
		target = shouldBeReady(ctx, blue, target)
		ns = newNamespace(ctx, red)
		caller = idle(ns, "caller")
		create(ctx, red, caller)
		caller = shouldBeReady(ctx, red, caller)
		Expect(connect(ctx, red, caller)(ctx, podAddress(target))).To(beRefused, "the way that the policies close")
	})

	It("does not reach another's pod by the IPv6 address that the kernel gives to each link", Label(smoke), func(ctx SpecContext) {
		out, err := kubectlOf(ctx, blue).in(ctx, target, "cat", "/sys/class/net/eth0/address")
		Expect(err).NotTo(HaveOccurred())
		mac, err := net.ParseMAC(strings.TrimSpace(out))
		Expect(err).NotTo(HaveOccurred())
		address := net.JoinHostPort(linkLocal(mac)+"%eth0", fmt.Sprint(port))
		Consistently(connect(ctx, red, caller)).WithContext(ctx).WithTimeout(soon / 18).WithArguments(address).Should(HaveOccurred())
	})

	// leads makes a Service without a selector and an EndpointSlice that leads
	// it to the target.
	leads := func(ctx context.Context, name string, change func(*corev1.Service)) *corev1.Service {
		GinkgoHelper()
		front := service(ns, name)
		front.Spec.Selector = nil
		change(front)
		create(ctx, red, front, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{target.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			}},
			Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(port)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		})
		return front
	}

	It("does not reach another's pod through its own node port and endpoints", Label(smoke), func(ctx SpecContext) {
		leads(ctx, "port", func(s *corev1.Service) {
			s.Spec.Type = corev1.ServiceTypeNodePort
			s.Spec.Ports[0].NodePort = nodePort
		})
		address := net.JoinHostPort(caller.Status.HostIP, fmt.Sprint(nodePort))
		Consistently(connect(ctx, red, caller)).WithContext(ctx).WithTimeout(soon / 6).WithArguments(address).Should(HaveOccurred())
	})

	It("does not reach another's pod through its own Service address and endpoints", func(ctx SpecContext) {
		front := leads(ctx, "address", func(*corev1.Service) {})
		Consistently(connect(ctx, red, caller)).WithContext(ctx).WithTimeout(soon / 6).WithArguments(serviceAddress(front)).Should(HaveOccurred())
	})

	// asks has the tenant's apiserver ask the target by a path, which answers
	// with the target's name if it is reached.
	asks := func(path string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			return kubectlOf(ctx, red).run(ctx, "", "get", "--raw", path)
		}
	}
	shouldNotAnswer := func(ctx context.Context, path string) {
		GinkgoHelper()
		Consistently(func(g Gomega, ctx context.Context) {
			answer, err := asks(path)(ctx)
			g.Expect(err).To(HaveOccurred())
			g.Expect(answer).NotTo(ContainSubstring(target.Name))
		}).WithContext(ctx).WithTimeout(soon / 18).Should(Succeed())
	}

	It("does not reach another's pod through services/proxy", func(ctx SpecContext) {
		leads(ctx, "proxied", func(*corev1.Service) {})
		shouldNotAnswer(ctx, fmt.Sprintf("/api/v1/namespaces/%s/services/proxied:80/proxy/hostname", ns))
	})

	It("does not reach another's pod through pods/proxy of a pod whose address it rewrites", func(ctx SpecContext) {
		gated := pod(ns, "rewritten", agnhost, "pause")
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/never"}}
		create(ctx, red, gated)
		was := gated.DeepCopy()
		gated.Status.PodIP, gated.Status.PodIPs = target.Status.PodIP, []corev1.PodIP{{IP: target.Status.PodIP}}
		Expect(red.Client.Status().Patch(ctx, gated, client.MergeFrom(was))).To(Succeed())
		shouldNotAnswer(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/rewritten:%d/proxy/hostname", ns, port))
	})

	It("does not reach another's pod through nodes/proxy of a node whose address it rewrites", func(ctx SpecContext) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
		create(ctx, red, node)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(red.Client.Delete(ctx, node))).To(Succeed()) })
		was := node.DeepCopy()
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: target.Status.PodIP}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
		Expect(red.Client.Status().Patch(ctx, node, client.MergeFrom(was))).To(Succeed())
		shouldNotAnswer(ctx, fmt.Sprintf("/api/v1/nodes/http:mine:%d/proxy/hostname", port))
		shouldNotAnswer(ctx, "/api/v1/nodes/mine/proxy/hostname")
	})
})

// linkLocal returns the address of a link by its hardware address (RFC 4291).
func linkLocal(mac net.HardwareAddr) string {
	return netip.AddrFrom16([16]byte{
		0: 0xfe, 1: 0x80, 8: mac[0] ^ 0x02, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5],
	}).String()
}
