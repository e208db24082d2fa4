package chain_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	definitions "github.com/virtualcluster/virtualcluster/config/networks"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// giveRange creates the ServiceCIDR of a network.
func giveRange(t *testing.T, client kubernetes.Interface, network, cidr string, more ...string) *networkingv1.ServiceCIDR {
	t.Helper()
	labels := map[string]string{networkv1.Label: network}
	for _, label := range more {
		labels[label] = "true"
	}
	made, err := client.NetworkingV1().ServiceCIDRs().Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{GenerateName: network + "-", Labels: labels}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{cidr}},
	}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return made
}

// serviceOf returns a Service of a network, with an address or without.
func serviceOf(name, network, address string) *corev1.Service {
	s := nodePort(name, address, 0)
	s.Spec.Type = corev1.ServiceTypeClusterIP
	if network != "" {
		s.Labels = map[string]string{networkv1.Label: network}
	}
	return s
}

// within reports whether a Service has an address of a range.
func within(cidr string) func(*corev1.Service) bool {
	return func(s *corev1.Service) bool {
		return netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(s.Spec.ClusterIP))
	}
}

// TestServicesOfNetworks: Services have addresses of their network's ranges, and
// those of other networks have none of these.
func TestServicesOfNetworks(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	c, _ := newChain(t)
	_, red := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/26")
	_, blue := serve(t, c, chain.Spec{Name: "blue"}, "10.96.0.0/26")
	services := red.CoreV1().Services("team")
	giveRange(t, red, "net-1", "10.96.0.32/28")
	giveRange(t, red, "net-2", "10.96.0.48/29")
	create := func(s *corev1.Service) (*corev1.Service, error) {
		return services.Create(ctx, s, metav1.CreateOptions{})
	}

	t.Run("of its range, each once, until it is exhausted", func(t *testing.T) {
		g := NewWithT(t)
		var made sync.WaitGroup
		for i := range 40 { // of 14 addresses
			made.Go(func() { _, _ = create(serviceOf(fmt.Sprint("one-", i), "net-1", "")) })
		}
		made.Wait()
		list, err := services.List(ctx, metav1.ListOptions{LabelSelector: networkv1.Label + "=net-1"})
		g.Expect(err).NotTo(HaveOccurred())
		found := map[string]bool{}
		for i := range list.Items {
			g.Expect(within("10.96.0.32/28")(&list.Items[i])).To(BeTrue(), list.Items[i].Spec.ClusterIP)
			found[list.Items[i].Spec.ClusterIP] = true
		}
		g.Expect(found).To(HaveLen(14))
		_, err = create(serviceOf("more", "net-1", ""))
		g.Expect(err).To(MatchError(ContainSubstring("no address is left of 10.96.0.32/28")))
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue())

		g.Expect(services.Delete(ctx, list.Items[0].Name, metav1.DeleteOptions{})).To(Succeed())
		g.Eventually(create, later).WithArguments(serviceOf("more", "net-1", "")).Should(HaveField("Spec.ClusterIP", list.Items[0].Spec.ClusterIP))
	})

	t.Run("of no range", func(t *testing.T) {
		g := NewWithT(t)
		for i := range 62 - 2 - 16 - 8 { // without those of the apiserver and of the DNS
			s, err := create(serviceOf(fmt.Sprint("none-", i), []string{"", "net-3"}[i%2], ""))
			g.Expect(err).NotTo(HaveOccurred(), i)
			g.Expect(within("10.96.0.32/28")(s)).To(BeFalse(), s.Spec.ClusterIP)
			g.Expect(within("10.96.0.48/29")(s)).To(BeFalse(), s.Spec.ClusterIP)
		}
		_, err := create(serviceOf("more-2", "", ""))
		g.Expect(err).To(MatchError(ContainSubstring("no address is left of 10.96.0.0/26 without the ranges of other networks")))
		_, err = create(serviceOf("kube-dns", "", "10.96.0.10"))
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("with a name of its own", func(t *testing.T) {
		g := NewWithT(t)
		for _, bad := range []*corev1.Service{
			serviceOf("bad", "", "10.96.0.50"), serviceOf("bad", "net-1", "10.96.0.50"), serviceOf("bad", "net-2", "10.96.0.60"),
		} {
			for _, options := range []metav1.CreateOptions{{}, {DryRun: []string{metav1.DryRunAll}}} {
				_, err := services.Create(ctx, bad, options)
				g.Expect(err).To(MatchError(ContainSubstring("is not an address of the Service's network")))
				g.Expect(apierrors.IsInvalid(err)).To(BeTrue())
			}
		}
		for range 10 { // ranges within another one must not make it depend on chance
			_, err := services.Create(ctx, serviceOf("good", "net-2", "10.96.0.50"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = services.Create(ctx, serviceOf("good", "net-2", ""), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err := create(serviceOf("good", "net-2", "10.96.0.50"))
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("that moves to another network", func(t *testing.T) {
		g := NewWithT(t)
		label := func(network string) []byte {
			return fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, networkv1.Label, network)
		}
		_, err := services.Patch(ctx, "good", types.MergePatchType, label("net-1"), metav1.PatchOptions{})
		g.Expect(err).To(MatchError(ContainSubstring("is not an address of the Service's network")))
		_, err = services.Patch(ctx, "none-0", types.MergePatchType, label("net-3"), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})

	t.Run("that gets an address later", func(t *testing.T) {
		g := NewWithT(t)
		external := serviceOf("later", "net-2", "")
		external.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
		_, err := create(external)
		g.Expect(err).NotTo(HaveOccurred())
		s, err := services.Patch(ctx, "later", types.MergePatchType,
			[]byte(`{"spec":{"type":"ClusterIP","externalName":null,"ports":[{"port":80}]}}`), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(within("10.96.0.48/29")(s)).To(BeTrue(), s.Spec.ClusterIP)
		headless, err := create(serviceOf("headless", "net-1", "None"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(headless.Spec.ClusterIP).To(Equal("None"))
	})

	t.Run("of another tenant", func(t *testing.T) {
		g := NewWithT(t)
		_, err := blue.CoreV1().Services("team").Create(ctx, serviceOf("web", "", "10.96.0.40"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})

	g.Expect(services.Delete(ctx, "more", metav1.DeleteOptions{})).To(Succeed())
}

// TestServicesOfTheDefaultNetwork: Services without a label are in it.
func TestServicesOfTheDefaultNetwork(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	was, err := red.CoreV1().Services("team").Create(t.Context(), serviceOf("was", "", "10.96.7.7"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	giveRange(t, red, "first", "10.96.1.0/24", networkv1.DefaultLabel)
	for _, network := range []string{"", "first"} {
		g.Eventually(func(g Gomega) {
			s := serviceOf("", network, "")
			s.GenerateName = "web-"
			made, err := red.CoreV1().Services("team").Create(t.Context(), s, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(within("10.96.1.0/24")(made)).To(BeTrue(), made.Spec.ClusterIP)
		}, later).Should(Succeed())
	}
	other, err := red.CoreV1().Services("team").Create(t.Context(), serviceOf("other", "second", ""), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(within("10.96.1.0/24")(other)).To(BeFalse())

	was.Spec.Ports[0].Port = 81 // one from before can be changed
	_, err = red.CoreV1().Services("team").Update(t.Context(), was, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestServicesAwaitRanges: a Service that is created with its network gets no
// address before the ranges of the network are there.
func TestServicesAwaitRanges(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	c, _ := newChain(t)
	tenant, red := serve(t, c, chain.Spec{Name: "red"}, "10.96.0.0/16")
	definition, err := definitions.CRD()
	g.Expect(err).NotTo(HaveOccurred())
	define(t, tenant, definition)
	client, err := dynamic.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	networks := client.Resource(networkv1.GroupVersion.WithResource(networkv1.Resource))
	create := func(name, network string) error {
		_, err := red.CoreV1().Services("team").Create(ctx, serviceOf(name, network, ""), metav1.CreateOptions{})
		return err
	}
	of := func(name string, service map[string]any) *unstructured.Unstructured {
		n := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"type": "other", "service": service}}}
		n.SetAPIVersion(networkv1.GroupVersion.String())
		n.SetKind(networkv1.Kind)
		n.SetName(name)
		made, err := networks.Create(ctx, n, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return made
	}
	cidrs := []any{"10.96.1.0/24"}
	made := of("net-1", map[string]any{"cidrs": cidrs})
	of("provided", map[string]any{"cidrs": cidrs, "ipam": "External"})

	err = red.CoreV1().RESTClient().Post().Namespace("team").Resource("services").MaxRetries(0).
		Body(serviceOf("web", "net-1", "")).Do(ctx).Error()
	g.Expect(err).To(MatchError(ContainSubstring("the ranges of Service addresses of Network net-1 are not there yet: it has no state yet")))
	seconds, retry := apierrors.SuggestsClientDelay(err)
	g.Expect(retry && seconds == 1).To(BeTrue(), "clients repeat it")
	g.Expect(create("elsewhere", "unknown")).To(Succeed())
	g.Expect(create("provided", "provided")).To(Succeed())

	g.Expect(unstructured.SetNestedField(made.Object, map[string]any{
		"phase": "Failed", "observedGeneration": made.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "ServiceRangesOutside", "message": "choose another", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}, "status")).To(Succeed())
	_, err = networks.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	err = create("web", "net-1")
	g.Expect(err).To(MatchError(ContainSubstring("the phase of Network net-1 is Failed: choose another")))
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())

	giveRange(t, red, "net-1", "10.96.1.0/24")
	g.Eventually(create, later).WithArguments("web", "net-1").Should(Succeed())
}
