package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// otherHost are the options of a vc-standalone that does nothing but host control planes.
var otherHost = []string{"--syncer=false", "--nodes=0"}

// startOtherHost starts one.
func startOtherHost(ctx context.Context) *local.SuperCluster {
	GinkgoHelper()
	host, err := local.Start(ctx, tempDir(), otherHost...)
	Expect(err).NotTo(HaveOccurred())
	return host
}

// hostedBy makes a control plane in another process. It is that of a tenant there, for one of a super cluster has a scheduler that would
// place the pods.
func hostedBy(ctx context.Context, host *local.SuperCluster) *local.Tenant {
	GinkgoHelper()
	vc := virtualCluster()
	create(ctx, host.Client, vc)
	Eventually(read(ctx, host.Client, vc)).WithTimeout(2 * soon). // not Ready: no syncer follows it there
									Should(haveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	there, err := host.Connect(ctx, must(read(ctx, host.Client, vc)()))
	Expect(err).NotTo(HaveOccurred())
	return there
}

// tenantThrough makes a tenant of such a control plane, which the syncer reaches by a kubeconfig that leads through something else.
func tenantThrough(ctx context.Context, there *local.Tenant, kubeconfig []byte) *local.Tenant {
	GinkgoHelper()
	source := secret("default", there.VC.Name, map[string]string{"kubeconfig": string(kubeconfig)})
	create(ctx, super.Client, source)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, source)).To(Succeed()) })
	t := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { external(vc, source.Name) })
	t.Client, t.Config = there.Client, there.Config
	return t
}
