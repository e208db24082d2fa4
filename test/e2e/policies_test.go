package e2e

import (
	"context"
	"fmt"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A tenant's NetworkPolicy", func() {
	It("admits the peers that it names, and no others", Label(smoke), func(ctx SpecContext) {
		ns, elsewhere := newNamespace(ctx, red), newNamespace(ctx, red)
		web, front := server(ns, "web"), service(ns, "web")
		friend, stranger, outsider := idle(ns, "friend"), idle(ns, "stranger"), idle(elsewhere, "friend")
		create(ctx, red, web, front, friend, stranger, outsider)
		addresses := []string{podAddress(shouldBeReady(ctx, red, web)), serviceAddress(front)}
		for _, p := range []*corev1.Pod{friend, stranger, outsider} {
			shouldBeReady(ctx, red, p)
			Eventually(connect(ctx, red, p)).WithContext(ctx).WithArguments(addresses[1]).Should(Succeed(), p.Name)
		}
		create(ctx, red, policyFor(web, networkingv1.PolicyTypeIngress, networkingv1.NetworkPolicyIngressRule{
			From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: friend.Labels}}},
			Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(port))}},
		}))
		for _, address := range addresses {
			for _, p := range []*corev1.Pod{stranger, outsider} {
				Eventually(connect(ctx, red, p)).WithContext(ctx).WithArguments(address).Should(beRefused, p.Name)
			}
			Eventually(connect(ctx, red, friend)).WithContext(ctx).WithArguments(address).Should(Succeed())
		}
		Expect(shouldBeReady(ctx, red, web).Status.ContainerStatuses[0].RestartCount).To(BeZero(), "its kubelet reaches it")
	})

	It("keeps a pod from going where it names nothing", func(ctx SpecContext) {
		ns := newNamespace(ctx, red)
		web, jailed := server(ns, "web"), idle(ns, "jailed")
		create(ctx, red, web, jailed)
		address := podAddress(shouldBeReady(ctx, red, web))
		shouldBeReady(ctx, red, jailed)
		Expect(connect(ctx, red, jailed)(ctx, address)).To(Succeed())
		create(ctx, red, policyFor(jailed, networkingv1.PolicyTypeEgress))
		Eventually(connect(ctx, red, jailed)).WithContext(ctx).WithArguments(address).Should(beRefused)
	})
})

var _ = Describe("Two tenants", Ordered, func() {
	var (
		here  string
		web   *corev1.Pod
		front *corev1.Service
	)

	BeforeAll(func(ctx SpecContext) {
		here = newNamespace(ctx, red)
		web, front = server(here, "web"), service(here, "web")
		create(ctx, red, web, front)
		web = shouldBeReady(ctx, red, web)
	})

	// shouldBeApart checks that red reaches its server from another namespace,
	// and that blue does not.
	shouldBeApart := func(ctx SpecContext) {
		GinkgoHelper()
		neighbour, stranger := idle(newNamespace(ctx, red), "neighbour"), idle(newNamespace(ctx, blue), "stranger")
		create(ctx, red, neighbour)
		create(ctx, blue, stranger)
		shouldBeReady(ctx, red, neighbour)
		shouldBeReady(ctx, blue, stranger)
		for _, address := range []string{podAddress(web), serviceAddress(front)} {
			Eventually(connect(ctx, red, neighbour)).WithContext(ctx).WithArguments(address).Should(Succeed())
			Expect(connect(ctx, blue, stranger)(ctx, address)).To(beRefused)
		}
		// Its DNS may only be starting: where this is the first spec, the
		// tenant has just been made.
		Eventually(connect(ctx, blue, stranger)).WithContext(ctx).WithArguments("kubernetes.default:443").
			Should(Succeed(), "its own apiserver, by its own DNS")
	}

	It("do not reach each other's pods", Label(smoke), shouldBeApart)

	It("do not although one of them admits all", func(ctx SpecContext) {
		open := policyFor(web, networkingv1.PolicyTypeIngress, networkingv1.NetworkPolicyIngressRule{})
		blocks := policyFor(web, networkingv1.PolicyTypeIngress, networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{
			{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}, {NamespaceSelector: &metav1.LabelSelector{}},
		}})
		blocks.Name = "blocks"
		create(ctx, red, open, blocks)
		for _, p := range []*networkingv1.NetworkPolicy{open, blocks} {
			copied := &networkingv1.NetworkPolicy{}
			Eventually(super.Client.Get).WithContext(ctx).
				WithArguments(client.ObjectKey{Namespace: red.Super(here), Name: p.Name}, copied).Should(Succeed())
		}
		shouldBeApart(ctx)
	})
})

// beRefused is how a connection ends that a policy does not let pass.
var beRefused = MatchError(ContainSubstring("TIMEOUT"))

// policyFor is a policy for one pod: what its rules do not let pass does not.
func policyFor(p *corev1.Pod, about networkingv1.PolicyType, in ...networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: p.Labels}, PolicyTypes: []networkingv1.PolicyType{about}, Ingress: in,
		},
	}
}

// idle is a pod in which commands can be run.
func idle(ns, name string) *corev1.Pod { return pod(ns, name, agnhost, "pause") }

// connect connects from a pod of a tenant to an address.
func connect(ctx context.Context, t *local.Tenant, from *corev1.Pod) func(context.Context, string) error {
	GinkgoHelper()
	as := kubectlOf(ctx, t)
	return func(ctx context.Context, address string) error {
		_, err := as.run(ctx, "", "exec", "-n", from.Namespace, from.Name, "--", "/agnhost", "connect", "--timeout=2s", address)
		return err
	}
}

func podAddress(p *corev1.Pod) string { return net.JoinHostPort(p.Status.PodIP, fmt.Sprint(port)) }

func serviceAddress(s *corev1.Service) string { return net.JoinHostPort(s.Spec.ClusterIP, "80") }
