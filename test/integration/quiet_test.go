package integration

import (
	"fmt"
	"maps"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// sentButEvents returns the syncer's requests so far, except those that sync
// events: the super cluster's controllers repeat their events at any time.
func sentButEvents() local.Requests {
	GinkgoHelper()
	sent, err := syncer.Requests()
	Expect(err).NotTo(HaveOccurred())
	maps.DeleteFunc(sent, func(request string, _ float64) bool { return strings.HasSuffix(request, " events") })
	return sent
}

var _ = Describe("A syncer of several tenants with objects of every kind", Ordered, func() {
	// At length, the numbers are those of a hundred tenants with a namespace
	// each, whose control planes would not fit on a small machine.
	tenants, namespaces, times := atLength(10, 3), atLength(10, 2), atLength(1, 3)
	var all []*local.Tenant

	BeforeAll(func(ctx SpecContext) {
		o := offerAll(ctx, 2*tenants*namespaces*times)
		made := 0
		for range tenants {
			t := tenant(ctx)
			all = append(all, t)
			for i := range namespaces {
				made += populate(ctx, t, o, fmt.Sprint("many-", i), times)
			}
		}
		AddReportEntry("objects created", made)
		for _, t := range all {
			shouldBePopulated(ctx, t)
		}
		settle(ctx)
	})

	It("writes nothing after a restart, and its patrol finds no difference", func(ctx SpecContext) {
		useSyncer(account, func(o *app.Options) { o.Patrol = time.Second })
		ready := map[string]string{"reason": "Ready"}
		Eventually(syncer.Metric).WithArguments("vc_syncer_tenants", ready).WithTimeout(2 * kit.Soon).Should(BeNumerically(">=", tenants))
		Eventually(syncer.Metric).WithArguments("vc_syncer_patrol_duration_seconds", map[string]string{}).WithTimeout(2*kit.Soon).
			Should(BeNumerically(">=", 3), "rounds of the patrol")
		Eventually(syncer.Metric).WithArguments("vc_syncer_queue_objects", map[string]string{}).Should(BeZero())
		settle(ctx)
		sent := sentButEvents()
		for request := range sent {
			Expect(request).To(MatchRegexp(`^\w+ (get|list) `), "a restart must not write")
		}
		Expect(syncer.Metric("vc_syncer_patrol_findings_total", map[string]string{})).To(BeZero())

		rounds, err := syncer.Metric("vc_syncer_patrol_duration_seconds", map[string]string{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(syncer.Metric).WithArguments("vc_syncer_patrol_duration_seconds", map[string]string{}).
			Should(BeNumerically(">=", rounds+2))
		Expect(sentButEvents().Since(sent)).To(BeEmpty(), "the patrol sends no request")
	})
})
