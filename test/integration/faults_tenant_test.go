package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func (f *faults) tenantOutage() {
	It("a tenant that cannot be reached holds nobody else, and nothing of it is lost", func(ctx SpecContext) {
		const ns = "tenant-outage"
		loads := f.busy(ctx, ns)
		about := superOf(f.red, service(ns, "told"))
		create(ctx, f.red.Client, service(ns, "told"))
		shouldExist(ctx, super.Client, about)
		f.far.Cut()
		// That the tenant cannot be reached shows when there is something to tell it.
		create(ctx, super.Client, eventAbout(about, "told"))
		Expect(pace(ctx, f.blue, outage)).To(BeNumerically("<", normal))
		Expect(read(ctx, super.Client, f.red.VC)()).
			To(haveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionFalse, tenancyv1alpha1.ReasonUnreachable))

		Expect(f.far.Resume()).To(Succeed())
		Eventually(read(ctx, super.Client, f.red.VC)).WithTimeout(recovery).
			Should(haveCondition(tenancyv1alpha1.ConditionSyncing, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
		shouldExist(ctx, f.red.Client, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "told"}})
		f.shouldBeWhole(ctx, loads)
	})
}
