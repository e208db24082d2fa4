package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

func (f *faults) superOutage() {
	It("nothing is lost while the super cluster is unreachable", Label("long"), func(ctx SpecContext) {
		const ns = "super-outage"
		loads := f.busy(ctx, ns)
		f.super.Cut()
		meanwhile := kit.Pod(ns+"-meanwhile", "waits")
		for _, t := range []*local.Tenant{f.red, f.blue} {
			kit.Create(ctx, t.Client, kit.Namespace(meanwhile.Namespace), meanwhile.DeepCopy())
		}
		Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(f.red, meanwhile)).WithTimeout(outage).
			Should(MatchError(apierrors.IsNotFound, "not found"))

		Expect(f.super.Resume()).To(Succeed())
		for _, t := range []*local.Tenant{f.red, f.blue} {
			Eventually(running).WithContext(ctx).WithArguments(t.Client, meanwhile.Namespace).WithTimeout(recovery).
				Should(ConsistOf(meanwhile.Name))
		}
		f.shouldBeWhole(ctx, loads)
	})
}
