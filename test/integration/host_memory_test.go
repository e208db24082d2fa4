package integration

import (
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// manyTenants is how many a replica of vc-host has when its memory is measured.
const manyTenants = 100

var _ = Describe("A replica of vc-host with many tenants", func() {
	const later = 15 * kit.Soon

	It("keeps all of them ready; prints what it takes", func(ctx SpecContext) {
		if os.Getenv(longer) == "" {
			Skip("set " + longer + "; make test-long does")
		}
		site := kit.StartSite(ctx)
		replica := site.StartReplica(ctx, "host-a")
		resident := func() int {
			GinkgoHelper()
			usage, err := measure.UsageOf(replica.Command.Process.Pid)
			Expect(err).NotTo(HaveOccurred())
			return usage.Resident >> 10
		}
		AddReportEntry("KiB without tenants", resident())
		started := time.Now()
		for range manyTenants {
			kit.Create(ctx, site.Client, kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "" }))
		}
		AddReportEntry("creation", time.Since(started).String())
		ready := func() (int, error) {
			all, count := &tenancyv1alpha1.VirtualClusterList{}, 0
			err := site.Client.List(ctx, all)
			for _, vc := range all.Items {
				if meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionControlPlaneReady) {
					count++
				}
			}
			return count, err
		}
		Eventually(ready).WithTimeout(later).WithPolling(time.Second).Should(Equal(manyTenants))
		AddReportEntry("all are ready", time.Since(started).String())
		Consistently(ready).WithTimeout(time.Minute).WithPolling(5 * time.Second).Should(Equal(manyTenants))
		AddReportEntry("KiB with tenants, after a minute", resident())
	}, SpecTimeout(kit.Longest))
})
