package integration

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// partOf returns a part of a tenant's range of Service addresses, with a size:
// the one that begins at an offset.
func partOf(t *local.Tenant, offset, bits int) networkv1.CIDR {
	GinkgoHelper()
	whole, err := netip.ParsePrefix(t.VC.Status.ServiceCIDR)
	Expect(err).NotTo(HaveOccurred())
	address := whole.Addr()
	for range offset {
		address = address.Next()
	}
	Expect(whole.Contains(address)).To(BeTrue())
	return networkv1.CIDR(netip.PrefixFrom(address, bits).String())
}

// inRange matches an address of a range.
func inRange(cidr networkv1.CIDR) gomegatypes.GomegaMatcher {
	whole := netip.MustParsePrefix(string(cidr))
	return WithTransform(func(s *corev1.Service) bool {
		address, err := netip.ParseAddr(s.Spec.ClusterIP)
		return err == nil && whole.Contains(address)
	}, BeTrue())
}

// onRange returns a Service of a network; of the default one if it is empty.
func onRange(name, network string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if network != "" {
		s.Labels = map[string]string{networkv1.Label: network}
	}
	return s
}

// rangesOf returns a function that reads the ranges that a network has in the
// tenant.
func rangesOf(ctx context.Context, t *local.Tenant, network string) func() ([]string, error) {
	return func() ([]string, error) {
		list := &networkingv1.ServiceCIDRList{}
		err := t.Client.List(ctx, list, client.MatchingLabels{networkv1.Label: network})
		var found []string
		for _, r := range list.Items {
			if r.DeletionTimestamp == nil {
				found = append(found, r.Spec.CIDRs...)
			}
		}
		return found, err
	}
}

// haveRanges matches a network whose ranges are in a state.
func haveRanges(reason, message string) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", networkv1.ConditionServiceRanges), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
}

var _ = Describe("Ranges of Service addresses of networks", Ordered, func() {
	// recounted is longer than the syncer takes to compare ranges with Services.
	const recounted = 2 * kit.Soon

	BeforeAll(func() {
		useSyncer(account, func(o *app.Options) { o.Networks, o.Patrol = true, 3*time.Second })
	})

	for _, isolation := range []tenancyv1alpha1.Isolation{tenancyv1alpha1.IsolationShared, tenancyv1alpha1.IsolationDedicated} {
		Context(fmt.Sprintf("of a %s tenant", isolation), Ordered, func() {
			var (
				red                  *local.Tenant
				first, second, small networkv1.CIDR
			)

			BeforeAll(func(ctx SpecContext) {
				red = tenant(ctx, kit.WithIsolation(isolation))
				first, second, small = partOf(red, 64, 27), partOf(red, 128, 28), partOf(red, 192, 30)
			})

			It("give Services their addresses, in both clusters, also those created with their network", func(ctx SpecContext) {
				Eventually(kit.Read(ctx, red.Client, network("default", ""))).Should(isReady())
				n := network("first", networkv1.TypeFlat, withRanges(first))
				service, plain := onRange("first", "first"), onRange("plain", "")
				plain.Spec.ClusterIP = netip.MustParsePrefix(string(partOf(red, 512, 32))).Addr().String()
				kit.Create(ctx, red.Client, n, service, plain)
				Expect(service).To(inRange(first))
				Eventually(kit.Read(ctx, red.Client, n)).Should(And(isReady(), haveRanges(networkv1.ReasonServiceRangesAvailable, "")))
				for _, s := range []*corev1.Service{service, plain} {
					Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, s))).Should(HaveField("Spec.ClusterIP", s.Spec.ClusterIP))
				}
				Expect(rangesOf(ctx, red, "first")()).To(ConsistOf(string(first)))

				By("rejecting addresses of another network")
				stolen := onRange("stolen", "")
				stolen.Spec.ClusterIP = netip.MustParsePrefix(string(first)).Addr().Next().String()
				Expect(red.Client.Create(ctx, stolen)).To(And(
					Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring("is not an address of the Service's network"))))
			})

			It("are the tenant's own, and no other network's", func(ctx SpecContext) {
				for name, bad := range map[string]struct {
					cidr   networkv1.CIDR
					reason string
				}{
					"overlapping": {partOf(red, 64, 28), networkv1.ReasonServiceRangesOverlap},
					"outside":     {"10.0.0.0/16", networkv1.ReasonServiceRangesOutside},
					"six":         {"fd00:1::/112", networkv1.ReasonServiceRangesOutside},
				} {
					n := network(name, networkv1.TypeFlat, withRanges(bad.cidr))
					kit.Create(ctx, red.Client, n)
					Eventually(kit.Read(ctx, red.Client, n)).Should(inPhase(networkv1.PhaseFailed, bad.reason))
					Expect(red.Client.Create(ctx, onRange(name, name))).To(And(
						Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("the phase of Network "+name+" is Failed: the range"))))
				}

				By("taking another one instead")
				n := network("overlapping", "")
				Expect(kit.Get(ctx, red.Client, n)).To(Succeed())
				kit.Edit(ctx, red.Client, n, func(n *networkv1.Network) { n.Spec.Service.CIDRs = []networkv1.CIDR{small} })
				Eventually(kit.Read(ctx, red.Client, n)).Should(isReady())

				By("reporting that it is exhausted")
				platforms, _ := apiServiceOf("overlapping")
				kit.ShouldExist(ctx, red.Client, platforms)
				Expect(platforms).To(inRange(small))
				s := onRange("small-1", "overlapping")
				kit.Create(ctx, red.Client, s)
				Expect(s).To(inRange(small))
				Expect(red.Client.Create(ctx, onRange("small-2", "overlapping"))).To(MatchError(ContainSubstring("no address is left of " + string(small))))
				Eventually(kit.Read(ctx, red.Client, n)).WithTimeout(recounted).Should(And(
					isReady(), haveRanges(networkv1.ReasonServiceRangesExhausted, "no address is left")))
			})

			It("are kept by the platform, as ServiceCIDRs", func(ctx SpecContext) {
				list := &networkingv1.ServiceCIDRList{}
				Expect(red.Client.List(ctx, list, client.MatchingLabels{networkv1.Label: "first"})).To(Succeed())
				Expect(list.Items).To(HaveLen(1))
				own := &networkingv1.ServiceCIDR{
					ObjectMeta: metav1.ObjectMeta{Name: "own", Labels: map[string]string{networkv1.Label: "first"}},
					Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{string(second)}},
				}
				for _, change := range []func() error{
					func() error { return red.Client.Delete(ctx, list.Items[0].DeepCopy()) },
					func() error {
						moved := list.Items[0].DeepCopy()
						moved.Labels[networkv1.Label] = "second"
						return red.Client.Patch(ctx, moved, client.MergeFrom(&list.Items[0]))
					},
					func() error { return red.Client.Create(ctx, own.DeepCopy()) },
				} {
					Eventually(change).Should(MatchError(ContainSubstring("the platform keeps the ServiceCIDRs of networks")))
				}
				delete(own.Labels, networkv1.Label)
				kit.Create(ctx, red.Client, own)
				Expect(red.Client.Delete(ctx, own)).To(Succeed())
			})

			It("follow the Network, and say which Services do not", func(ctx SpecContext) {
				n := network("first", "")
				Expect(kit.Get(ctx, red.Client, n)).To(Succeed())
				kit.Edit(ctx, red.Client, n, func(n *networkv1.Network) { n.Spec.Service.CIDRs = []networkv1.CIDR{second} })
				Eventually(rangesOf(ctx, red, "first")).Should(ConsistOf(string(second)))
				old := onRange("first", "first")
				Expect(kit.Get(ctx, red.Client, old)).To(Succeed())
				Eventually(kit.Read(ctx, red.Client, n)).WithTimeout(recounted).Should(And(
					isReady(), haveRanges(networkv1.ReasonServiceRangeInUse, "default/first with "+old.Spec.ClusterIP)))
				Eventually(func(g Gomega) {
					s := onRange("", "first")
					s.GenerateName = "new-"
					g.Expect(red.Client.Create(ctx, s)).To(Succeed())
					g.Expect(s).To(inRange(second))
				}).Should(Succeed())
				kit.Edit(ctx, red.Client, old, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
				Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, old))).Should(HaveField("Spec.Ports", ContainElement(HaveField("Port", int32(81)))))

				By("moving the Services of the platform")
				platforms, _ := apiServiceOf("first")
				Eventually(kit.Read(ctx, red.Client, platforms)).WithTimeout(recounted).Should(inRange(second))

				By("outliving the syncer")
				restartSyncer()
				Expect(red.Client.Delete(ctx, old)).To(Succeed())
				Eventually(kit.Read(ctx, red.Client, n)).WithTimeout(recounted).Should(And(
					isReady(), haveRanges(networkv1.ReasonServiceRangesAvailable, "")))
				Expect(rangesOf(ctx, red, "first")()).To(ConsistOf(string(second)))

				By("ending with it")
				Expect(red.Client.Delete(ctx, n)).To(Succeed())
				kit.ShouldVanish(ctx, red.Client, n)
				Eventually(rangesOf(ctx, red, "first")).Should(BeEmpty())
			})

			It("can be the default network's", func(ctx SpecContext) {
				third := partOf(red, 224, 27)
				n := network("default", "")
				Expect(kit.Get(ctx, red.Client, n)).To(Succeed())
				kit.Edit(ctx, red.Client, n, func(n *networkv1.Network) {
					n.Spec.Service = &networkv1.ServiceSpec{CIDRs: []networkv1.CIDR{third}}
				})
				Eventually(rangesOf(ctx, red, "default")).Should(ConsistOf(string(third)))
				Eventually(func(g Gomega) {
					s := onRange("", "")
					s.GenerateName = "unlabelled-"
					g.Expect(red.Client.Create(ctx, s)).To(Succeed())
					g.Expect(s).To(inRange(third))
				}).Should(Succeed())
				Eventually(kit.Read(ctx, red.Client, n)).WithTimeout(recounted).Should(
					haveRanges(networkv1.ReasonServiceRangeInUse, "default/plain with "))
			})
		})
	}

	It("are not there in a control plane that the platform does not run", func(ctx SpecContext) {
		t := externalTenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.95.248.0/24" })
		n := network("ranges", networkv1.TypeFlat, withRanges("10.95.248.64/26"))
		createNetwork(ctx, t, n)
		Eventually(kit.Read(ctx, t.Client, n)).Should(inPhase(networkv1.PhaseFailed, networkv1.ReasonServiceRangesUnsupported))
		Expect(rangesOf(ctx, t, "ranges")()).To(BeEmpty())
	})
})
