package integration

import (
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func (f *faults) kills() {
	// atMost is the longest life of a syncer: from before its start to full
	// operation.
	const atMost = 2 * time.Second
	kills := atLength(50, 6)
	It(fmt.Sprintf("nothing is lost or duplicated when the syncer is killed %d times", kills), func(ctx SpecContext) {
		loads := f.busy(ctx, "kills")
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(kills)))
		By(fmt.Sprintf("killing with --ginkgo.seed=%d", GinkgoRandomSeed()))
		whileStopped(func() {
			for range kills {
				victim, err := super.StartSyncerProcess(GinkgoWriter, "--patrol", noPatrol.String())
				Expect(err).NotTo(HaveOccurred())
				select {
				case <-time.After(time.Duration(random.Int64N(int64(atMost)))):
				case <-ctx.Done():
				}
				Expect(victim.Kill()).To(Succeed())
			}
		})
		f.shouldBeWhole(ctx, loads)
	})
}
