package integration

import (
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A replica of vc-host whose ports for pods are all in use", Label("long"), func() {
	const later = 6 * kit.Soon

	It("reports it in a condition, and starts the control plane when a port is free", func(ctx SpecContext) {
		site := kit.StartSite(ctx)
		_, port, err := net.SplitHostPort(kit.FreeAddress(ctx))
		Expect(err).NotTo(HaveOccurred())
		site.StartReplica(ctx, "host-a", "--pod-address="+kit.MachineAddress(), "--pod-ports="+port+"-"+port)
		hosted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "" }
		red, blue := kit.VirtualCluster(hosted), kit.VirtualCluster(hosted)
		is := func(status metav1.ConditionStatus, reason string) types.GomegaMatcher {
			return kit.HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, status, reason)
		}

		kit.Create(ctx, site.Client, red)
		Eventually(kit.Read(ctx, site.Client, red)).WithTimeout(later).Should(is(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		kit.Create(ctx, site.Client, blue)
		Eventually(kit.Read(ctx, site.Client, blue)).WithTimeout(later).Should(is(metav1.ConditionFalse, tenancyv1alpha1.ReasonNoPodPort))
		Expect(kit.Read(ctx, site.Client, red)()).To(is(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))

		Expect(site.Client.Delete(ctx, red)).To(Succeed())
		Eventually(kit.Read(ctx, site.Client, blue)).WithTimeout(later).Should(is(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	}, SpecTimeout(kit.Longest))
})
