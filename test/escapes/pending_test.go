package escapes

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// The condition Synced describes pending objects of the tenant, which controls
// their number and their names.
var _ = Describe("The description of pending objects", func() {
	const ns = "pending"

	attack("pending objects by the hundred", "review: a status that is written for every change", func(ctx SpecContext) {
		const (
			summaries = 2
			pace      = 20 // objects a second: as fast as it gets, they would be thousands
		)
		mallory := tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		paced := flowcontrol.NewTokenBucketRateLimiter(pace, 1)
		f := newFlood(ctx, func(ctx context.Context, wave int64) error {
			if err := paced.Wait(ctx); err != nil {
				return err
			}
			return mallory.Client.Create(ctx, rejectedService(ns, fmt.Sprintf("%s-%d", strings.Repeat("n", 50), wave)))
		})
		Eventually(kit.Read(ctx, super.Client, mallory.VC)).WithTimeout(3 * kit.Soon).
			Should(kit.HaveCondition(tenancyv1alpha1.ConditionSynced, metav1.ConditionFalse, tenancyv1alpha1.ReasonObjectsPending))
		before, err := syncer.Requests()
		Expect(err).NotTo(HaveOccurred())
		waves := f.waves.Load()
		writes := func() (float64, error) {
			now, err := syncer.Requests()
			return now.Since(before)["super patch virtualclusters/status"], err
		}
		Consistently(writes).WithTimeout(summaries * 10 * time.Second).Should(BeNumerically("<=", summaries+1))
		Expect(writes()).To(BeNumerically(">", 0), "writes are counted")
		f.stop()
		Expect(f.err()).NotTo(HaveOccurred())
		Expect(f.waves.Load()).To(BeNumerically(">", waves+100), "objects became pending meanwhile")
		// The flood creates several at a time, so that the oldest is one of the first. The next summary has all.
		Eventually(kit.Read(ctx, super.Client, mallory.VC)).Should(HaveField("Status.Conditions", ContainElement(
			HaveField("Message", MatchRegexp(`^\d{3,} objects pending, oldest Service pending/n+-\d{1,2}: Rejected`)))))
	})
})

// rejectedService is a Service that the syncer rejects.
func rejectedService(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, // addresses would run out
			Ports:     []corev1.ServicePort{{Port: 80}}, ExternalIPs: []string{"192.0.2.1"},
		},
	}
}
