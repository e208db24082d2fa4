package integration

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// paces is the minimum number of pods for a pace: fewer say more about the
// machine than about the syncer.
const paces = 7

// pace runs one pod of a tenant after the other, at most one a second, and
// returns the median of the times until they ran: the syncer is not to blame
// when the machine stalls for a moment.
func pace(ctx context.Context, t *local.Tenant, during time.Duration) time.Duration {
	GinkgoHelper()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var all []time.Duration
	for began := time.Now(); time.Since(began) < during || len(all) < paces; <-ticker.C {
		all = append(all, runOne(ctx, t))
	}
	slices.Sort(all)
	half := all[len(all)/2]
	AddReportEntry("pods ran after", half.Round(time.Millisecond).String()+", the slowest after "+all[len(all)-1].Round(time.Millisecond).String())
	return half
}

// beNormal matches a normal pace of a tenant. The pace before the fault shows
// how busy the machine is.
func beNormal(before time.Duration) gomegatypes.GomegaMatcher {
	return BeNumerically("<", normal+3*before)
}

// runOne runs a pod of its own, and returns the time until it ran.
func runOne(ctx context.Context, t *local.Tenant) time.Duration {
	GinkgoHelper()
	began := time.Now()
	p := kit.Pod(metav1.NamespaceDefault, "")
	p.GenerateName = "pace-"
	kit.Create(ctx, t.Client, p)
	Eventually(kit.Read(ctx, t.Client, p)).Should(HaveField("Status.Phase", corev1.PodRunning))
	took := time.Since(began)
	Expect(t.Client.Delete(ctx, p)).To(Succeed())
	return took
}
