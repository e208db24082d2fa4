package integration

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// An apiserver that loses an acknowledged write sends no event for the loss:
// the syncer assumes that the copy is up to date, and neither side changes any
// more.
var _ = Describe("The patrol", func() {
	It("repairs a difference that no event reports", func(ctx SpecContext) {
		const ns = "patrolled"
		havePort := func(port int32) gomegatypes.GomegaMatcher {
			return HaveField("Spec.Ports", ConsistOf(HaveField("Port", port)))
		}
		lossy := kit.Hostile(account)
		kubeconfig, err := lossy.Kubeconfig()
		Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		useSyncer(config, func(o *app.Options) { o.Patrol = patrolled })

		red := tenant(ctx)
		const name = "web"
		svc := service(ns, name)
		kit.Create(ctx, red.Client, kit.Namespace(ns), svc)
		copied := kit.SuperOf(red, svc)
		kit.ShouldExist(ctx, super.Client, copied)
		settle(ctx)
		found := func() (float64, error) {
			return syncer.Metric("vc_syncer_patrol_findings_total", map[string]string{"kind": "Service"})
		}
		before := must(found()) // on a busy machine, it may find what is still being created

		lost := &atomic.Int64{}
		undo := lossy.On(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/services/"+name)
		}, func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
			lost.Add(1)
			instead := r.Clone(context.WithoutCancel(r.Context()))
			instead.Method, instead.Body, instead.ContentLength, instead.URL.RawQuery = http.MethodGet, http.NoBody, 0, ""
			behind.ServeHTTP(w, instead)
		})
		DeferCleanup(undo)
		kit.Edit(ctx, red.Client, svc, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		Eventually(lost.Load).Should(BeNumerically(">=", 1))
		Eventually(found).WithTimeout(2 * kit.Soon).Should(BeNumerically(">", before))
		Expect(kit.Read(ctx, super.Client, copied)()).To(havePort(80), "the apiserver loses writes")

		undo()
		Eventually(kit.Read(ctx, super.Client, copied)).WithTimeout(2 * kit.Soon).Should(havePort(81))
	})
})

// patrolled is a short interval, for a spec that waits for rounds of the
// patrol.
const patrolled = 3 * time.Second
