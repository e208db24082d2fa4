package escapes

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// The syncer has few workers, so that a tenant that holds them keeps them from
// the others. The specs assert how far others get meanwhile, and not how long
// that takes.
var _ = Describe("The workers of the syncer", Ordered, func() {
	const (
		ns = "pace"
		// sleepers are tenants of one control plane. Four of them hold all
		// workers, each as many as it may have.
		sleepers, tenantCap, workers = 4, 4, 16
		// nap is shorter than the syncer's timeout, so that the answers count
		// as those of an apiserver that is well.
		nap        = 4 * time.Second
		honestPods = 20
	)
	var (
		mallory, honest *local.Tenant
		apiserver       *local.Hostile
	)

	BeforeAll(func(ctx SpecContext) {
		Expect(app.DefaultOptions()).To(And(HaveField("Workers", workers), HaveField("TenantCap", tenantCap)))
		mallory, honest = tenant(ctx), tenant(ctx)
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		kit.Create(ctx, honest.Client, kit.Namespace(ns))
		apiserver = kit.Hostile(mallory.Config)
		accomplices(ctx, apiserver, sleepers)
	})

	attack("four tenants whose webhooks sleep hold all workers", "review: four tenants with webhooks that sleep 5 s", func(ctx SpecContext) {
		const victims = 40
		// run returns how long it takes until a number of the honest tenant's pods run.
		run := func(name string, all int) time.Duration {
			GinkgoHelper()
			begun := time.Now()
			for i := range honestPods {
				kit.Create(ctx, honest.Client, kit.Pod(ns, fmt.Sprintf("%s-%02d", name, i)))
			}
			Eventually(running(ctx, honest, ns)).WithTimeout(2 * kit.Soon).Should(Equal(all))
			return time.Since(begun)
		}
		alone := run("alone", honestPods)
		d := &dozer{nap: nap}
		DeferCleanup(apiserver.On(isWrite, d.answer))
		for i := range victims {
			// Each has to be rejected with an event, which is a write to the
			// tenant.
			kit.Create(ctx, mallory.Client, kit.Pod(ns, fmt.Sprintf("sleeper-%02d", i), func(p *corev1.Pod) { p.Spec.NodeName = "node-1" }))
		}
		Eventually(d.waiting.Load).Should(BeNumerically(">=", workers))
		before := d.answered.Load()
		run("honest", 2*honestPods)
		// The workers that are held come back a round of naps at a time. Others
		// must not wait for more than the few rounds that the honest tenant's
		// pods take alone, which are more on a busy machine.
		rounds := 3 + int(2*alone/nap)
		Expect(d.answered.Load()-before).To(BeNumerically("<=", rounds*sleepers*tenantCap), "delayed answers while others waited")
	})
})

// isWrite reports whether a request writes, which is what triggers webhooks.
func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// dozer is an answer that comes after a nap, and counts.
type dozer struct {
	nap               time.Duration
	waiting, answered atomic.Int64
}

// answer answers as the apiserver does, after the nap.
func (d *dozer) answer(w http.ResponseWriter, r *http.Request, behind http.Handler) {
	d.waiting.Add(1)
	local.Delay(d.nap)(w, r, behind)
	d.waiting.Add(-1)
	d.answered.Add(1)
}

// accomplices creates External tenants, all of one control plane, and waits
// until they are synced.
func accomplices(ctx context.Context, of *local.Hostile, count int) []*local.Tenant {
	GinkgoHelper()
	kubeconfig, err := of.Kubeconfig()
	Expect(err).NotTo(HaveOccurred())
	secret := kit.KubeconfigSecret(ctx, super, fmt.Sprintf("accomplices-%d", time.Now().UnixNano()), kubeconfig)
	var all []*local.Tenant
	for range count {
		all = append(all, tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { kit.SetExternal(vc, secret) }))
	}
	return all
}

// running returns a function that counts the pods of a tenant's namespace that
// run.
func running(ctx context.Context, t *local.Tenant, ns string) func() (int, error) {
	return func() (int, error) {
		pods, count := &corev1.PodList{}, 0
		if err := t.Client.List(ctx, pods, client.InNamespace(ns)); err != nil {
			return 0, err
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				count++
			}
		}
		return count, nil
	}
}
