package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// nap is the time that the webhooks of sleepy tenants take for each write.
	nap = 5 * time.Second
	// sleepyFew is a number of sleepy tenants that could occupy all workers if
	// these were shared.
	sleepyFew = 4
	// sleepyObjects is the number of objects of each sleepy tenant that cause
	// writes, sleepyEvery the interval at which all of them change.
	sleepyObjects, sleepyEvery = 40, 5 * time.Second
)

// sleepy measures how tenants with slow webhooks affect others. The sleepy
// tenants are External ones with one control plane: for the syncer each is a
// tenant, and the machine does not have to run a control plane for each.
func (w *world) sleepy(ctx context.Context) (err error) {
	tenants, err := w.tenants(ctx, w.opts.Tenants)
	if err != nil {
		return err
	}
	b, err := w.bed(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.remove(context.WithoutCancel(ctx))) }()
	s := &report.Scenario{Name: "sleepy", Size: fmt.Sprintf("%d and %d tenants whose writes take %s, %d others with %d pods, %g a second",
		sleepyFew, w.opts.SleepyTenants, nap, len(tenants), w.opts.LightPods, w.opts.Rate)}
	s.Notef("the figures are those of the tenants that are not sleepy")
	var pooled [3]stages
	for n, sleepers := range []int{0, sleepyFew, w.opts.SleepyTenants} {
		if err := b.fill(ctx, sleepers); err != nil {
			return err
		}
		for run := range w.opts.Runs {
			w.progress.sayf("beside %d, run %d of %d", sleepers, run+1, w.opts.Runs)
			measured, err := b.beside(ctx, ofTenants(tenants))
			if err != nil {
				return err
			}
			measured.report(s, fmt.Sprintf("beside %d: ", sleepers))
			pooled[n] = pooled[n].and(measured)
		}
	}
	s.Charts = []*report.Chart{latencyChart("latency", "Latency of other tenants alone, and beside tenants whose webhooks sleep",
		pooled[0].lines("alone: ", whole), pooled[1].lines(fmt.Sprintf("beside %d: ", sleepyFew), whole),
		pooled[2].lines(fmt.Sprintf("beside %d: ", w.opts.SleepyTenants), whole))}
	return w.publish(s)
}

// bed is the home of sleepy tenants: a proxy that delays writes to a control
// plane.
type bed struct {
	world     *world
	behind    *local.Tenant
	apiserver *local.Hostile
	sleepers  []*local.Tenant
}

func (w *world) bed(ctx context.Context) (*bed, error) {
	behind, err := w.newTenant(ctx, virtualCluster("bed"))
	if err != nil {
		return nil, err
	}
	apiserver, err := local.NewHostile(behind.Config)
	if err != nil {
		return nil, err
	}
	b := &bed{world: w, behind: behind, apiserver: apiserver}
	for i := range sleepyObjects {
		if err := behind.Client.Create(ctx, sleepyPod(i)); err != nil {
			return nil, fmt.Errorf("create a sleepy pod: %w", err)
		}
	}
	return b, nil
}

// sleepyPod returns a pod that the syncer rejects. It reports the rejection in
// an event, which is a write to the tenant.
func sleepyPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("sleepy-%02d", i)},
		Spec:       corev1.PodSpec{NodeName: "none", Containers: []corev1.Container{{Name: "main", Image: "example/app:1"}}},
	}
}

// fill adjusts the number of sleepers.
func (b *bed) fill(ctx context.Context, n int) error {
	kubeconfig, err := b.apiserver.Kubeconfig()
	if err != nil {
		return err
	}
	missing := n - len(b.sleepers)
	made := make([]*local.Tenant, max(missing, 0))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(starting)
	for i := range made {
		group.Go(func() (err error) {
			made[i], err = b.world.external(ctx, fmt.Sprintf("sleepy-%03d", len(b.sleepers)+i), kubeconfig)
			return err
		})
	}
	err = group.Wait()
	b.sleepers = append(b.sleepers, made...)
	return err
}

// beside measures a light load while the syncer works for the sleepers.
func (b *bed) beside(ctx context.Context, others place) (measured stages, err error) {
	undo := b.apiserver.On(func(r *http.Request) bool { return r.Method != http.MethodGet }, local.Delay(nap))
	defer undo()
	working, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { b.wake(working) })
	return b.world.trickle(ctx, others)
}

// wake keeps changing all objects of the sleepers until ctx ends.
func (b *bed) wake(ctx context.Context) {
	for n := 0; ; n++ {
		for i := range sleepyObjects {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/nap":"%d"}}}`, n)
			// Ignores errors: the next change follows soon.
			_ = b.behind.Client.Patch(ctx, sleepyPod(i), client.RawPatch("application/merge-patch+json", patch))
		}
		select {
		case <-time.After(sleepyEvery):
		case <-ctx.Done():
			return
		}
	}
}

// remove deletes the sleepers and what they share.
func (b *bed) remove(ctx context.Context) error {
	defer b.apiserver.Close()
	return b.world.removeTenants(ctx, append(b.sleepers, b.behind))
}
