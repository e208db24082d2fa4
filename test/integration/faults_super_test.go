package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/test/local"
)

func (f *faults) superOutage() {
	It("nothing is lost while the super cluster cannot be reached", func(ctx SpecContext) {
		const ns = "super-outage"
		loads := f.busy(ctx, ns)
		f.super.Cut()
		meanwhile := pod(ns+"-meanwhile", "waits")
		for _, t := range []*local.Tenant{f.red, f.blue} {
			create(ctx, t.Client, namespace(meanwhile.Namespace), meanwhile.DeepCopy())
		}
		Consistently(get).WithContext(ctx).WithArguments(super.Client, superOf(f.red, meanwhile)).WithTimeout(outage).
			Should(MatchError(apierrors.IsNotFound, "not found"))

		Expect(f.super.Resume()).To(Succeed())
		for _, t := range []*local.Tenant{f.red, f.blue} {
			Eventually(running).WithContext(ctx).WithArguments(t.Client, meanwhile.Namespace).WithTimeout(recovery).
				Should(ConsistOf(meanwhile.Name))
		}
		f.shouldBeWhole(ctx, loads)
	})
}
