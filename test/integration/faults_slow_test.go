package integration

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func (f *faults) slowness() {
	It("a tenant that responds slowly is synced, and does not delay others", Label("long"), func(ctx SpecContext) {
		loads := f.busy(ctx, "slow")
		before := pace(ctx, f.blue, outage/4)
		f.far.Slow(300*time.Millisecond, 500*time.Millisecond)
		f.super.Slow(50*time.Millisecond, 50*time.Millisecond)
		Expect(pace(ctx, f.blue, outage/2)).To(beNormal(before))
		f.shouldBeWhole(ctx, loads) // still slow
	})
}
