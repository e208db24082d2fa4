package escapes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// warnings returns the messages of the events that tell a tenant that an object
// is over its quota.
func warnings(ctx context.Context, t *local.Tenant, about client.Object) func() ([]string, error) {
	return kit.Events(ctx, t, about, "QuotaExceeded")
}

// shouldBeRejected asserts that an event has the reason why an object is not
// synced down, without the super cluster's names, and that it has no copy.
func shouldBeRejected(ctx context.Context, t *local.Tenant, obj client.Object, why string) {
	GinkgoHelper()
	Eventually(kit.Rejections(ctx, t, obj)).Should(ContainElement(ContainSubstring(why)))
	Expect(kit.Rejections(ctx, t, obj)()).NotTo(ContainElement(ContainSubstring(t.Key())))
	kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(t, obj))
}

// inBothChains declares attacks on control planes with a handler chain of their
// own, and on those in a shared one, which the texts of the attacks end with.
func inBothChains(declare func(isolation tenancyv1alpha1.Isolation, where string)) {
	Describe("with a handler chain of their own", Ordered, func() {
		declare(tenancyv1alpha1.IsolationDedicated, "")
	})
	Describe("in a shared handler chain", Ordered, func() {
		declare(tenancyv1alpha1.IsolationShared, ", in a shared chain")
	})
}

// shouldServeOthers asserts that another tenant is synced after each attack of a
// container.
func shouldServeOthers(isolation tenancyv1alpha1.Isolation, ns string) {
	var (
		alice *local.Tenant
		works int
	)
	BeforeAll(func(ctx SpecContext) {
		alice = tenant(ctx, kit.WithIsolation(isolation))
		kit.Create(ctx, alice.Client, kit.Namespace(ns))
	})
	AfterEach(func(ctx SpecContext) {
		works++
		shouldSync(ctx, alice, ns, fmt.Sprintf("works-%d", works))
	})
}

// unread are watches whose responses are not read.
type unread struct {
	// open is how many of them are open, and answered how many requests for them
	// have been.
	open, answered atomic.Int64
}

// unreadWatches opens watches of a path, until the end of the spec. Those that are
// rejected try again.
func unreadWatches(ctx context.Context, config *rest.Config, path string, number int) *unread {
	GinkgoHelper()
	const perConnection = 100 // HTTP/2 has a limit of streams
	var senders []*http.Client
	for range (number + perConnection - 1) / perConnection {
		own := rest.CopyConfig(config)
		own.Dial = (&net.Dialer{}).DialContext // it shares no connections then
		sender, err := rest.HTTPClientFor(own)
		Expect(err).NotTo(HaveOccurred())
		senders = append(senders, sender)
	}
	hanging, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	DeferCleanup(func() {
		stop()
		work.Wait()
	})
	watches := &unread{}
	for i := range number {
		work.Go(func() {
			for hanging.Err() == nil {
				sent, _ := http.NewRequestWithContext(hanging, http.MethodGet, config.Host+path, nil) // the URL is valid
				response, err := senders[i/perConnection].Do(sent)
				watches.answered.Add(1)
				if err == nil && response.StatusCode == http.StatusOK {
					watches.open.Add(1)
					<-hanging.Done()
				}
				if err == nil {
					_ = response.Body.Close()
				}
				time.Sleep(time.Second) // the control plane may be on its way to another replica
			}
		})
	}
	return watches
}
