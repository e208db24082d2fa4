package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

func (f *faults) tenantOutage() {
	It("a tenant that is unreachable does not delay others, and none of its objects is lost", Label("long"), func(ctx SpecContext) {
		loads := f.busy(ctx, "tenant-outage")
		before := pace(ctx, f.blue, outage/4)
		f.far.Cut()
		Expect(pace(ctx, f.blue, outage)).To(beNormal(before))
		Eventually(kit.Read(ctx, super.Client, f.red.VC)).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionFalse, tenancyv1alpha1.ReasonUnreachable))

		Expect(f.far.Resume()).To(Succeed())
		Eventually(kit.Read(ctx, super.Client, f.red.VC)).WithTimeout(recovery).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		f.shouldBeWhole(ctx, loads)
	})
}
