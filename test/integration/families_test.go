package integration

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// inFamilies returns a Service with a policy and IP families.
func inFamilies(name string, policy corev1.IPFamilyPolicy, families ...corev1.IPFamily) *corev1.Service {
	s := onRange(name, "")
	s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = &policy, families
	return s
}

// haveAddressesOf matches a Service with an address of each of these ranges, in
// their order.
func haveAddressesOf(ranges ...string) gomegatypes.GomegaMatcher {
	matchers := make([]any, len(ranges))
	for i, text := range ranges {
		cidr := netip.MustParsePrefix(text)
		matchers[i] = WithTransform(func(text string) bool {
			address, err := netip.ParseAddr(text)
			return err == nil && cidr.Contains(address)
		}, BeTrue())
	}
	return HaveField("Spec.ClusterIPs", HaveExactElements(matchers...))
}

var _ = Describe("Service addresses of two IP families", Ordered, func() {
	var (
		both      *local.SuperCluster
		red, blue *local.Tenant
		four, six string // red's
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		both, err = local.Start(ctx, kit.TempDir(), "--nodes=1", "--networks", "--secondary-service-cidr-pool=fd00:64::/107")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(both.Stop()).To(Succeed()) })
		red, err = both.NewTenant(ctx, virtualCluster())
		Expect(err).NotTo(HaveOccurred())
		blue, err = both.NewTenant(ctx, virtualCluster(kit.WithIsolation(tenancyv1alpha1.IsolationDedicated)))
		Expect(err).NotTo(HaveOccurred())
		four, six = red.VC.Status.ServiceCIDR, red.VC.Status.SecondaryServiceCIDR
	})

	It("are a tenant's own, with as many of each", func() {
		for _, t := range []*local.Tenant{red, blue} {
			first, second := netip.MustParsePrefix(t.VC.Status.ServiceCIDR), netip.MustParsePrefix(t.VC.Status.SecondaryServiceCIDR)
			Expect(netip.MustParsePrefix("fd00:64::/107").Contains(second.Addr())).To(BeTrue())
			Expect(128 - second.Bits()).To(Equal(32 - first.Bits()))
		}
		Expect(netip.MustParsePrefix(six).Overlaps(netip.MustParsePrefix(blue.VC.Status.SecondaryServiceCIDR))).To(BeFalse())
	})

	It("are those of Services in both clusters, as their policies say", func(ctx SpecContext) {
		for _, t := range []*local.Tenant{red, blue} {
			four, six := t.VC.Status.ServiceCIDR, t.VC.Status.SecondaryServiceCIDR
			for want, s := range map[gomegatypes.GomegaMatcher]*corev1.Service{
				haveAddressesOf(four):      onRange("plain", ""),
				haveAddressesOf(six):       inFamilies("six", corev1.IPFamilyPolicySingleStack, corev1.IPv6Protocol),
				haveAddressesOf(four, six): inFamilies("prefer", corev1.IPFamilyPolicyPreferDualStack),
				haveAddressesOf(six, four): inFamilies("require", corev1.IPFamilyPolicyRequireDualStack, corev1.IPv6Protocol, corev1.IPv4Protocol),
			} {
				kit.Create(ctx, t.Client, s)
				Expect(s).To(want)
				Eventually(kit.Read(ctx, both.Client, kit.SuperOf(t, s))).Should(And(
					HaveField("Spec.ClusterIPs", s.Spec.ClusterIPs), HaveField("Spec.IPFamilies", s.Spec.IPFamilies)))
			}
		}
	})

	It("are added and removed with the policy of a Service", func(ctx SpecContext) {
		s := onRange("changing", "")
		kit.Create(ctx, red.Client, s)
		down := kit.SuperOf(red, s)
		Eventually(kit.Read(ctx, both.Client, down)).Should(haveAddressesOf(four))
		Expect(kit.Get(ctx, both.Client, down)).To(Succeed())
		uid := down.GetUID()
		kit.Edit(ctx, red.Client, s, func(s *corev1.Service) { s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack) })
		Expect(s).To(haveAddressesOf(four, six))
		Eventually(kit.Read(ctx, both.Client, down)).Should(And(HaveField("Spec.ClusterIPs", s.Spec.ClusterIPs), HaveField("UID", uid)))
		kit.Edit(ctx, red.Client, s, func(s *corev1.Service) { s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack) })
		Expect(s).To(haveAddressesOf(four))
		Eventually(kit.Read(ctx, both.Client, down)).Should(And(HaveField("Spec.ClusterIPs", s.Spec.ClusterIPs), HaveField("UID", uid)))
	})

	It("belong to networks as those of one", func(ctx SpecContext) {
		second := netip.MustParsePrefix(six).Addr().As16()
		second[15] = 0x80
		ofSix := networkv1.CIDR(netip.PrefixFrom(netip.AddrFrom16(second), 121).String())
		ofFour := partOf(red, 128, 25)
		n := network("both", networkv1.TypeFlat, withRanges(ofFour, ofSix))
		createNetwork(ctx, red, n)
		Eventually(kit.Read(ctx, red.Client, n)).Should(isReady())
		s := inFamilies("on-both", corev1.IPFamilyPolicyRequireDualStack)
		s.Labels = map[string]string{networkv1.Label: n.Name}
		kit.Create(ctx, red.Client, s)
		Expect(s).To(haveAddressesOf(string(ofFour), string(ofSix)))
		Eventually(kit.Read(ctx, both.Client, kit.SuperOf(red, s))).Should(HaveField("Spec.ClusterIPs", s.Spec.ClusterIPs))
		for i := range 20 {
			plain := inFamilies("", corev1.IPFamilyPolicyRequireDualStack)
			plain.GenerateName = "plain-"
			kit.Create(ctx, red.Client, plain)
			Expect(netip.MustParsePrefix(string(ofSix)).Contains(netip.MustParseAddr(plain.Spec.ClusterIPs[1]))).To(BeFalse(), "%d", i)
		}
	})

	It("are no other tenant's", func(ctx SpecContext) {
		theirs := netip.MustParsePrefix(blue.VC.Status.SecondaryServiceCIDR)
		kit.Create(ctx, red.Client, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: "made-up"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{theirs.String()}},
		})
		stolen := inFamilies("stolen", corev1.IPFamilyPolicySingleStack, corev1.IPv6Protocol)
		stolen.Spec.ClusterIP = addresses.In(theirs, addresses.DNS).String()
		Eventually(red.Client.Create).WithContext(ctx).WithArguments(stolen).Should(Succeed(), "its own apiserver serves what it likes")
		Eventually(kit.Events(ctx, red, stolen, "SyncRejected")).WithTimeout(2 * kit.Soon).Should(ConsistOf(
			ContainSubstring("is not one of this cluster's addresses, which are in " + four + " and " + six)))
		kit.ShouldStayAbsent(ctx, both.Client, kit.SuperOf(red, stolen))

		By("not for what the super cluster's own controllers make")
		direct := inFamilies("direct", corev1.IPFamilyPolicySingleStack, corev1.IPv6Protocol)
		direct.Namespace, direct.Spec.ClusterIP = red.Super("default"), stolen.Spec.ClusterIP
		Expect(both.Client.Create(ctx, direct)).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("reserved"))))
	})
})

var _ = Describe("Service addresses of IPv6 first", Ordered, func() {
	var super *local.SuperCluster

	BeforeAll(func(ctx SpecContext) {
		var err error
		super, err = local.Start(ctx, kit.TempDir(), "--nodes=1", "--networks",
			"--service-cidr-pool=fd00:64::/107", "--service-cidr-prefix=118", "--secondary-service-cidr-pool=10.64.0.0/11")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
	})

	for _, isolation := range []tenancyv1alpha1.Isolation{tenancyv1alpha1.IsolationShared, tenancyv1alpha1.IsolationDedicated} {
		It("are those of a tenant's Services, its apiserver included, "+string(isolation), func(ctx SpecContext) {
			t, err := super.NewTenant(ctx, virtualCluster(kit.WithIsolation(isolation)))
			Expect(err).NotTo(HaveOccurred())
			six, four := t.VC.Status.ServiceCIDR, t.VC.Status.SecondaryServiceCIDR
			apiserver := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
			kit.ShouldExist(ctx, t.Client, apiserver)
			Expect(apiserver.Spec.ClusterIPs).To(HaveExactElements(addresses.In(netip.MustParsePrefix(six), addresses.Apiserver).String()))
			for want, s := range map[gomegatypes.GomegaMatcher]*corev1.Service{
				haveAddressesOf(six):       onRange("plain", ""),
				haveAddressesOf(four):      inFamilies("four", corev1.IPFamilyPolicySingleStack, corev1.IPv4Protocol),
				haveAddressesOf(six, four): inFamilies("prefer", corev1.IPFamilyPolicyPreferDualStack),
			} {
				kit.Create(ctx, t.Client, s)
				Expect(s).To(want)
				Eventually(kit.Read(ctx, super.Client, kit.SuperOf(t, s))).Should(And(
					HaveField("Spec.ClusterIPs", s.Spec.ClusterIPs), HaveField("Spec.IPFamilies", s.Spec.IPFamilies)))
			}
		})
	}

	It("can be those of one that names its range, and has no other", func(ctx SpecContext) {
		t, err := super.NewTenant(ctx, virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "fd00:96::/112" }))
		Expect(err).NotTo(HaveOccurred())
		s := onRange("plain", "")
		kit.Create(ctx, t.Client, s)
		Expect(s).To(haveAddressesOf("fd00:96::/112"))
		Expect(t.Client.Create(ctx, inFamilies("four", corev1.IPFamilyPolicySingleStack, corev1.IPv4Protocol))).
			To(MatchError(ContainSubstring("not configured on this cluster")))
	})
})

var _ = Describe("A second range of Service addresses", func() {
	It("is added to hosted tenants that exist, and their Services stay as they are", func(ctx SpecContext) {
		dir := kit.TempDir()
		super, err := local.Start(ctx, dir, "--nodes=1")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
		var tenants []*local.Tenant
		before := map[*local.Tenant]*corev1.Service{}
		for _, isolation := range []tenancyv1alpha1.Isolation{tenancyv1alpha1.IsolationShared, tenancyv1alpha1.IsolationDedicated} {
			t, err := super.NewTenant(ctx, virtualCluster(kit.WithIsolation(isolation)))
			Expect(err).NotTo(HaveOccurred())
			Expect(t.VC.Status.SecondaryServiceCIDR).To(BeEmpty())
			Expect(t.Client.Create(ctx, inFamilies("early", corev1.IPFamilyPolicyRequireDualStack))).
				To(MatchError(ContainSubstring("not configured for dual-stack")))
			s := inFamilies("before", corev1.IPFamilyPolicyPreferDualStack)
			kit.Create(ctx, t.Client, s)
			Expect(s).To(haveAddressesOf(t.VC.Status.ServiceCIDR))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, s))
			tenants, before[t] = append(tenants, t), s
		}
		Expect(super.Stop()).To(Succeed())

		super, err = local.Start(ctx, dir, "--nodes=1", "--secondary-service-cidr-pool=fd00:64::/107")
		Expect(err).NotTo(HaveOccurred())
		for _, was := range tenants {
			vc := was.VC
			Eventually(kit.Read(ctx, super.Client, vc)).Should(HaveField("Status.SecondaryServiceCIDR", HavePrefix("fd00:64::")))
			Expect(super.WaitReady(ctx, vc)).To(Succeed())
			t, err := super.Connect(ctx, vc)
			Expect(err).NotTo(HaveOccurred())
			four, six := t.VC.Status.ServiceCIDR, t.VC.Status.SecondaryServiceCIDR
			Expect(four).To(Equal(was.VC.Status.ServiceCIDR))

			s := before[was]
			// The conditions may be from before the restart, and an apiserver that has just started briefly rejects Services.
			Eventually(kit.Get).WithContext(ctx).WithArguments(t.Client, s).WithTimeout(2 * kit.Soon).Should(Succeed())
			Expect(s).To(haveAddressesOf(four))
			after := inFamilies("after", corev1.IPFamilyPolicyRequireDualStack)
			Eventually(t.Client.Create).WithContext(ctx).WithArguments(after).WithTimeout(2 * kit.Soon).Should(Succeed())
			Expect(after).To(haveAddressesOf(four, six))
			kit.Edit(ctx, t.Client, s, func(s *corev1.Service) { s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack) })
			Expect(s).To(haveAddressesOf(four, six))
			for _, each := range []*corev1.Service{s, after} {
				Eventually(kit.Read(ctx, super.Client, kit.SuperOf(t, each))).WithTimeout(recovery).Should(HaveField("Spec.ClusterIPs", each.Spec.ClusterIPs))
			}
		}
	})
})
