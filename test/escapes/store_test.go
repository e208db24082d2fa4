package escapes

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/test/kit"
)

// A store and a replica of vc-host have the data of many tenants, each of which
// says how much is read of it at a time.
var _ = Describe("The memory of a store and of vc-host", func() {
	attack("watches that begin with all objects, by the hundreds, and read nothing", "idea: what each watch reads before it begins",
		func(ctx SpecContext) {
			const objects, watches, most = 400, 300, 1 << 30
			site := kit.StartSite(ctx)
			replica := site.StartReplica(ctx, "host-a")
			mallory, alice := site.NewTenant(ctx), site.NewTenant(ctx)
			of, err := kubernetes.NewForConfig(mallory.Config)
			Expect(err).NotTo(HaveOccurred())
			for i := range objects {
				large := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i)}, Data: map[string]string{"data": strings.Repeat("x", 100<<10)},
				}
				_, err := of.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, large, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}

			store, host := peak(site.Store.Command.Process.Pid), peak(replica.Command.Process.Pid)
			before := store()
			unread := unreadWatches(ctx, mallory.Config, "/api/v1/configmaps?watch=1", watches)
			Eventually(unread.answered.Load).WithTimeout(4 * kit.Soon).Should(BeNumerically(">=", watches))
			others, err := kubernetes.NewForConfig(alice.Config)
			Expect(err).NotTo(HaveOccurred())
			listing := kit.StartLister(ctx, others)
			DeferCleanup(listing.Stop)
			Consistently(func() []int64 { return []int64{store(), host()} }).WithTimeout(40*time.Second).Should(HaveEach(BeNumerically("<", most)), "before: %d", before)
			listing.Stop()
			Expect(listing.Failures()).To(BeEmpty())
			AddReportEntry("peak memory in MiB, of the store before and now, and of vc-host", fmt.Sprint(before>>20, " ", store()>>20, " ", host()>>20))
		}, SpecTimeout(kit.Longest))

	attack("watches by the hundreds whose clients read nothing, while large objects change", "review: the client of etcd keeps changes without a limit",
		func(ctx SpecContext) {
			const watches, changes, size, most = 100, 200, 100 << 10, 1 << 30
			site := kit.StartSite(ctx)
			replica := site.StartReplica(ctx, "host-a")
			mallory, alice := site.NewTenant(ctx), site.NewTenant(ctx)
			of, err := kubernetes.NewForConfig(mallory.Config)
			Expect(err).NotTo(HaveOccurred())
			objects := of.CoreV1().ConfigMaps(metav1.NamespaceDefault)
			large, err := objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			host := peak(replica.Command.Process.Pid)
			before := host()
			unread := unreadWatches(ctx, mallory.Config, "/api/v1/configmaps?watch=1&resourceVersion="+large.ResourceVersion, watches)
			Eventually(unread.open.Load).WithTimeout(4 * kit.Soon).Should(BeEquivalentTo(watches))

			others, err := kubernetes.NewForConfig(alice.Config)
			Expect(err).NotTo(HaveOccurred())
			listing := kit.StartLister(ctx, others)
			DeferCleanup(listing.Stop)
			large.ResourceVersion = "" // whatever it is
			for i := range changes {
				large.Data = map[string]string{"data": strings.Repeat(strconv.Itoa(i%10), size)}
				Eventually(func() error { // at its pace
					_, err := objects.Update(ctx, large, metav1.UpdateOptions{})
					return err
				}).WithTimeout(4 * kit.Soon).Should(Succeed())
			}
			listing.Stop()
			Expect(host()).To(BeNumerically("<", most), "before: %d", before)
			Expect(listing.Failures()).To(BeEmpty())
			AddReportEntry("peak memory of vc-host in MiB, before and now", fmt.Sprint(before>>20, " ", host()>>20))
		}, SpecTimeout(kit.Longest))
})

// peak returns a function that returns the largest memory that a process has had.
func peak(process int) func() int64 {
	return func() int64 {
		GinkgoHelper()
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
		Expect(err).NotTo(HaveOccurred(), "the process has ended")
		_, rest, found := strings.Cut(string(status), "VmHWM:")
		Expect(found).To(BeTrue())
		kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		Expect(err).NotTo(HaveOccurred())
		return kib << 10
	}
}
