package chain_test

import (
	"context"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// withFamilies returns a Service with a policy and IP families.
func withFamilies(name, network string, policy corev1.IPFamilyPolicy, families ...corev1.IPFamily) *corev1.Service {
	s := serviceOf(name, network, "")
	s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &policy, families
	return s
}

// expectIn expects that a Service has an address of each of these ranges, in
// their order.
func expectIn(g Gomega, s *corev1.Service, ranges ...string) {
	g.Expect(s.Spec.ClusterIPs).To(HaveLen(len(ranges)), s.Name)
	for i, text := range s.Spec.ClusterIPs {
		g.Expect(netip.MustParsePrefix(ranges[i]).Contains(netip.MustParseAddr(text))).To(BeTrue(), "%s: %s in %s", s.Name, text, ranges[i])
	}
}

// TestServicesOfTwoFamilies: a tenant with two ranges has Services of each IP
// family, and of both, with and without ranges of networks.
func TestServicesOfTwoFamilies(t *testing.T) {
	c, _ := newChain(t)
	for name, with := range map[string]struct {
		network, four, six string
	}{
		"plain":    {"", "10.96.0.0/24", "fd00::/120"},
		"networks": {"net-1", "10.96.0.64/26", "fd00::80/122"},
		"four":     {"net-2", "10.96.0.128/26", "fd00::/120"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, client := serve(t, c, chain.Spec{Name: name}, "10.96.0.0/24,fd00::/120")
			if with.network == "net-1" {
				giveRange(t, client, "net-1", with.six)
			}
			if with.network != "" {
				giveRange(t, client, with.network, with.four)
			}
			expectFamilies(t.Context(), g, client, with.network, with.four, with.six)
		})
	}
}

func expectFamilies(ctx context.Context, g Gomega, client kubernetes.Interface, network, four, six string) {
	services := client.CoreV1().Services("team")
	create := func(s *corev1.Service) *corev1.Service {
		made, err := services.Create(ctx, s, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return made
	}
	patch := func(name, data string) *corev1.Service {
		made, err := services.Patch(ctx, name, types.MergePatchType, []byte(data), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return made
	}
	expectIn(g, create(serviceOf("default", network, "")), four)
	expectIn(g, create(withFamilies("six", network, corev1.IPFamilyPolicySingleStack, corev1.IPv6Protocol)), six)
	expectIn(g, create(withFamilies("prefer", network, corev1.IPFamilyPolicyPreferDualStack)), four, six)
	expectIn(g, create(withFamilies("require", network, corev1.IPFamilyPolicyRequireDualStack, corev1.IPv6Protocol, corev1.IPv4Protocol)), six, four)
	expectIn(g, create(withFamilies("first", network, corev1.IPFamilyPolicyRequireDualStack, corev1.IPv6Protocol)), six, four)
	named := withFamilies("named", network, corev1.IPFamilyPolicyRequireDualStack)
	named.Spec.ClusterIP = netip.MustParsePrefix(four).Addr().Next().Next().String()
	made := create(named)
	expectIn(g, made, four, six)
	g.Expect(made.Spec.ClusterIP).To(Equal(named.Spec.ClusterIP))

	expectIn(g, patch("default", `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`), four, six)
	expectIn(g, patch("default", `{"metadata":{"labels":{"example.com/x":"y"}}}`), four, six)
	// Upstream's repair deletes an address that it knows before the Service has it, and creates one that the Service had until now.
	g.Eventually(func(g Gomega) {
		was := patch("default", `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
		single := patch("default", `{"spec":{"ipFamilyPolicy":"SingleStack"}}`)
		g.Expect(single.Spec.ClusterIPs).To(Equal(was.Spec.ClusterIPs[:1]))
		g.Eventually(func() error {
			_, err := client.NetworkingV1().IPAddresses().Get(ctx, was.Spec.ClusterIPs[1], metav1.GetOptions{})
			return err
		}, "1s").Should(MatchError(ContainSubstring("not found")))
	}, later).Should(Succeed(), "it is released")

	cidr, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cidr.Labels).NotTo(HaveKey(networkv1.Label))
	g.Expect(cidr.Spec.CIDRs).To(HaveLen(2))
}

// TestTwoFamiliesOfANewTenant: its ServiceCIDR has both, and its own Service the
// first.
func TestTwoFamiliesOfANewTenant(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	tenant, client := serve(t, c, chain.Spec{Name: "served"}, "10.96.0.0/24,fd00::/120")
	g.Expect(client.NetworkingV1().ServiceCIDRs().Delete(t.Context(), "kubernetes", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
		cidr, err := client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cidr.Spec.CIDRs).To(Equal([]string{"10.96.0.0/24", "fd00::/120"}))
	}).WithTimeout(later).Should(Succeed())
	own, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(own.Spec.ClusterIPs).To(Equal([]string{"10.96.0.1"}))
}
