package integration

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A VirtualCluster", func() {
	It("with an empty spec becomes a tenant", func(ctx SpecContext) {
		red := tenant(ctx)
		Expect(red.VC.Status.Phase).To(Equal(tenancyv1alpha1.PhaseRunning))
		Expect(red.VC.Status.ObservedGeneration).To(Equal(red.VC.Generation))
		Expect(red.VC.Status.ClusterNamespace).To(Equal(names.ClusterKey("default", red.VC.Name, red.VC.UID)))
		Expect(red.VC.Status.Endpoint).To(HavePrefix("https://"))
		Expect(red.VC.Status.Version).To(HavePrefix("v1.36."))
		Expect(red.Client.List(ctx, &corev1.NamespaceList{})).To(Succeed())
	})

	It("is reconciled after a change", func(ctx SpecContext) {
		red := tenant(ctx)
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Weight = 5
			vc.Spec.OpaqueMetaPrefixes = []string{"internal.example.com/"}
		})
		Eventually(kit.Read(ctx, super.Client, red.VC)).Should(HaveField("Status.ObservedGeneration", red.VC.Generation))
		svc := service("default", "web")
		svc.Labels = map[string]string{"internal.example.com/owner": "team", "public": "yes"}
		Eventually(func(g Gomega) {
			g.Expect(red.Client.Create(ctx, svc.DeepCopy())).To(Or(Succeed(), MatchError(apierrors.IsAlreadyExists, "exists")))
			down := kit.SuperOf(red, svc)
			g.Expect(kit.Get(ctx, super.Client, down)).To(Succeed())
			g.Expect(down.Labels).To(HaveKey("public"))
			g.Expect(down.Labels).NotTo(HaveKey("internal.example.com/owner"))
		}).WithContext(ctx).Should(Succeed())
	})

	It("has its kubeconfig Secret recreated", func(ctx SpecContext) {
		red := tenant(ctx)
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: red.Key(), Name: names.AdminKubeconfigSecret}}
		Expect(super.Client.Delete(ctx, s)).To(Succeed())
		kit.ShouldExist(ctx, super.Client, s)
		Expect(s.Data).To(HaveKey(names.AdminKubeconfigKey))
	})

	It("that is deleted while its pods are being created leaves nothing", func(ctx SpecContext) {
		vc := virtualCluster()
		red, err := super.NewTenant(ctx, vc)
		Expect(err).NotTo(HaveOccurred())
		kit.Create(ctx, red.Client, kit.Namespace("busy"), deployment("busy", "many", 200), service("busy", "many"))
		Eventually(podNames).WithContext(ctx).WithArguments(super.Client, red.Super("busy")).ShouldNot(BeEmpty())
		removeTenant(ctx, vc)
		Expect(superNamespaces(ctx, vc)).To(BeEmpty())
		// The syncer may have been about to create another one, which the super
		// cluster's garbage collector deletes.
		Eventually(func(g Gomega) {
			g.Consistently(superNamespaces).WithContext(ctx).WithArguments(vc).Should(BeEmpty())
		}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
		Expect(red.Client.List(ctx, &corev1.NamespaceList{})).NotTo(Succeed())
	})

	It("has a Service range of its own", func(ctx SpecContext) {
		red, blue := tenant(ctx), tenant(ctx)
		of := func(vc *tenancyv1alpha1.VirtualCluster) netip.Prefix {
			return netip.MustParsePrefix(vc.Status.ServiceCIDR)
		}
		Expect(of(red.VC).Overlaps(of(blue.VC))).To(BeFalse(), "%s and %s", of(red.VC), of(blue.VC))

		named := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.95.252.0/24" })
		Expect(named.VC.Status.ServiceCIDR).To(Equal("10.95.252.0/24"))
		late := virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.95.252.128/25" })
		kit.Create(ctx, super.Client, late)
		DeferCleanup(func(ctx SpecContext) { beginRemoval(ctx, late) })
		Eventually(kit.Read(ctx, super.Client, late)).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionFalse, tenancyv1alpha1.ReasonServiceCIDRTaken))
		Expect(must(kit.Read(ctx, super.Client, late)()).Status.Message).
			To(And(ContainSubstring("overlaps"), Not(ContainSubstring(named.VC.Name))))
	})

	It("with a Service range outside the super cluster's has copies with other addresses", func(ctx SpecContext) {
		red := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.200.0.0/24" })
		Expect(red.VC.Status.ServiceCIDR).To(BeEmpty())
		svc := service("default", "web")
		kit.Create(ctx, red.Client, svc)
		Expect(svc.Spec.ClusterIP).To(HavePrefix("10.200.0."))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, svc))).
			Should(HaveField("Spec.ClusterIP", Not(Or(BeEmpty(), HavePrefix("10.200.0.")))))
	})

	It("with a name that was used before starts empty", func(ctx SpecContext) {
		first := virtualCluster()
		red, err := super.NewTenant(ctx, first)
		Expect(err).NotTo(HaveOccurred())
		kit.Create(ctx, red.Client, kit.Namespace("old"))
		removeTenant(ctx, first)
		again := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Name = first.Name })
		Expect(again.Key()).NotTo(Equal(red.Key()))
		Expect(kit.Get(ctx, again.Client, kit.Namespace("old"))).To(MatchError(apierrors.IsNotFound, "not found"))
	})
})

var _ = DescribeTable("An invalid VirtualCluster is rejected with what to change",
	func(ctx SpecContext, change func(*tenancyv1alpha1.VirtualCluster), message string) {
		err := super.Client.Create(ctx, virtualCluster(change))
		Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"))
		Expect(err.Error()).To(ContainSubstring(message))
	},
	Entry("a provisioner that no program can have", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "hosted" }, "spec.provisioner"),
	Entry("no version", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.KubernetesVersion = "newest" }, "spec.kubernetesVersion"),
	Entry("a bad CIDR", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.0.0.0/99" }, "CIDR"),
	Entry("a CIDR with host bits", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ServiceCIDR = "10.96.0.7/16" }, "no host bits"),
	Entry("a bad domain", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ClusterDomain = "not a domain" }, "spec.clusterDomain"),
	Entry("a negative weight", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Weight = -1 }, "spec.weight"),
	Entry("a name too long", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Name = strings.Repeat("x", 41) }, "at most 40"),
	Entry("a name with dots", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Name = "a.b" }, "DNS label"),
	Entry("External without a Secret", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal }, "external"),
)

var _ = DescribeTable("A VirtualCluster that cannot run reports the reason in its conditions",
	func(ctx SpecContext, change func(*tenancyv1alpha1.VirtualCluster), reason, message string) {
		vc := virtualCluster(change)
		if vc.Namespace != "default" {
			ns := kit.Namespace(vc.Namespace)
			kit.Create(ctx, super.Client, ns)
			DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, ns)).To(Succeed()) })
		}
		kit.Create(ctx, super.Client, vc)
		DeferCleanup(func(ctx SpecContext) { beginRemoval(ctx, vc) })
		Eventually(kit.Read(ctx, super.Client, vc)).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionFalse, reason))
		Expect(kit.Read(ctx, super.Client, vc)()).
			To(kit.HaveCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionFalse, reason))
		Expect(must(kit.Read(ctx, super.Client, vc)()).Status.Message).To(ContainSubstring(message))
	},
	Entry("a version that no provisioner has", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.KubernetesVersion = "v1.99.0" },
		tenancyv1alpha1.ReasonUnsupportedVersion, "v1.36"),
	Entry("a provisioner that this manager lacks", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerNative },
		tenancyv1alpha1.ReasonProvisionerUnavailable, "Hosted"),
	Entry("a provisioner of a platform's own that this manager lacks", func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "Magic" },
		tenancyv1alpha1.ReasonProvisionerUnavailable, "it has: Converted, External, Hosted"),
	Entry("a namespace so long that the key is too long", func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Namespace = "a-namespace-with-a-very-long-name-for-a-team-" + fmt.Sprint(time.Now().UnixNano()%1e9)
	}, tenancyv1alpha1.ReasonNameTooLong, "shorter"),
	Entry("a kubeconfig Secret that does not exist", func(vc *tenancyv1alpha1.VirtualCluster) { kit.SetExternal(vc, "no-such-secret") },
		tenancyv1alpha1.ReasonKubeconfigMissing, "no-such-secret"),
)

var _ = Describe("An External VirtualCluster", func() {
	It("follows its kubeconfig Secret from invalid to valid", func(ctx SpecContext) {
		// Another tenant's control plane serves as the external one.
		elsewhere := tenant(ctx)
		good := must(kit.Read(ctx, super.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: elsewhere.Key(), Name: names.AdminKubeconfigSecret,
		}})()).Data[names.AdminKubeconfigKey]

		source := secret("default", "elsewhere", map[string]string{"kubeconfig": "no: kubeconfig"})
		kit.Create(ctx, super.Client, source)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, source)).To(Succeed()) })
		vc := virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { kit.SetExternal(vc, source.Name) })
		kit.Create(ctx, super.Client, vc)
		DeferCleanup(func(ctx SpecContext) { removeTenant(ctx, vc) })

		expect := func(reason string, data []byte) {
			GinkgoHelper()
			if data != nil {
				kit.Edit(ctx, super.Client, source, func(s *corev1.Secret) { s.Data = map[string][]byte{"kubeconfig": data} })
			}
			Eventually(kit.Read(ctx, super.Client, vc)).WithTimeout(3 * kit.Soon).
				Should(kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionFalse, reason))
		}
		expect(tenancyv1alpha1.ReasonKubeconfigInvalid, nil)
		expect(tenancyv1alpha1.ReasonUnauthorized, changed(good, func(c *clientcmdapi.Config) {
			for _, user := range c.AuthInfos {
				*user = clientcmdapi.AuthInfo{Token: "nobody's"}
			}
		}))
		expect(tenancyv1alpha1.ReasonUnreachable, changed(good, func(c *clientcmdapi.Config) {
			for _, cluster := range c.Clusters {
				cluster.Server = "https://127.0.0.1:1"
			}
		}))
		expect(tenancyv1alpha1.ReasonKubeconfigInvalid, changed(good, func(c *clientcmdapi.Config) {
			for _, user := range c.AuthInfos {
				user.Exec = &clientcmdapi.ExecConfig{Command: "/bin/true", APIVersion: "client.authentication.k8s.io/v1"}
			}
		}))
		kit.Edit(ctx, super.Client, source, func(s *corev1.Secret) { s.Data = map[string][]byte{"kubeconfig": good} })
		Eventually(kit.Read(ctx, super.Client, vc)).WithTimeout(3 * kit.Soon).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	})
})

// changed returns a modified kubeconfig.
func changed(data []byte, change func(*clientcmdapi.Config)) []byte {
	GinkgoHelper()
	config, err := clientcmd.Load(data)
	Expect(err).NotTo(HaveOccurred())
	change(config)
	out, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return out
}
