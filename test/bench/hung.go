package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// held is the label that the node selector of pods requires with the value
// released, so that no pod runs before nodes have it.
const held, released = "vc-bench/held", "no"

// hung measures how a tenant's apiserver that stops responding affects other
// tenants, and how fast that tenant catches up.
func (w *world) hung(ctx context.Context) (err error) {
	tenants, err := w.tenants(ctx, w.opts.Tenants)
	if err != nil {
		return err
	}
	w.progress.sayf("starting a control plane in a process of its own")
	elsewhere, err := w.controlPlane(ctx, "hung", "--manager=false", "--nodes=0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, elsewhere.Stop()) }()
	kubeconfig, err := os.ReadFile(filepath.Join(elsewhere.Dir, "super.kubeconfig"))
	if err != nil {
		return err
	}
	victim, err := w.external(ctx, "hung", kubeconfig)
	if err != nil {
		return err
	}
	if err := w.populate(ctx, []*local.Tenant{victim}); err != nil {
		return err
	}
	s := &report.Scenario{Name: "hung", Size: fmt.Sprintf("1 tenant with %d pods to sync up, %d others with %d pods, %g a second",
		w.opts.HungPods, len(tenants), w.opts.LightPods, w.opts.Rate)}
	s.Notef("the figures are those of the other tenants, except the last ones; the apiserver is a process of its own, stopped by a signal")
	var pooled [2]stages
	for run := range w.opts.Runs {
		w.progress.sayf("run %d of %d", run+1, w.opts.Runs)
		h := hang{world: w, elsewhere: elsewhere, victim: ofTenants([]*local.Tenant{victim}), others: ofTenants(tenants)}
		if err := h.run(ctx); err != nil {
			return err
		}
		h.report(s)
		pooled[0] = pooled[0].and(h.before)
		pooled[1] = pooled[1].and(h.during)
	}
	s.Charts = []*report.Chart{latencyChart("latency", "Latency of other tenants while an apiserver responds, and while it hangs",
		pooled[0].lines("before: ", down, up, whole), pooled[1].lines("while: ", down, up, whole))}
	if err := w.removeTenants(ctx, []*local.Tenant{victim}); err != nil {
		return err
	}
	return w.publish(s)
}

// hang is one run in which an apiserver is stopped and continued.
type hang struct {
	world          *world
	elsewhere      *local.SuperCluster
	victim, others place

	before, during stages
	// first and last are the times from continuing the apiserver until it shows
	// the first and the last of its pods running.
	first, last time.Duration
}

func (h *hang) run(ctx context.Context) (err error) {
	if h.before, err = h.world.trickle(ctx, h.others); err != nil {
		return err
	}
	l, err := h.world.newLoad(ctx, h.victim)
	if err != nil {
		return err
	}
	defer l.close()
	defer func() { err = errors.Join(err, h.label(context.WithoutCancel(ctx), false)) }()
	pods := h.world.opts.HungPods
	hold := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{held: released} }
	if err := l.pour(ctx, []int{0}, "", pods, 1, hold); err != nil {
		return err
	}
	if err := l.await(ctx, "", copied, pods); err != nil {
		return err
	}
	if err := h.whileStopped(ctx, l, pods); err != nil {
		return err
	}
	began := time.Now()
	if err := l.await(ctx, "", shown, pods); err != nil {
		return err
	}
	ran := l.moments("", shown)
	h.first, h.last = ran[0].Sub(began), ran[len(ran)-1].Sub(began)
	return l.remove(ctx)
}

// whileStopped stops the apiserver, lets its pods run in the super cluster,
// measures the other tenants, and continues the apiserver.
func (h *hang) whileStopped(ctx context.Context, l *load, pods int) (err error) {
	if err := syscall.Kill(h.elsewhere.PID(), syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the apiserver: %w", err)
	}
	defer func() { err = errors.Join(err, syscall.Kill(h.elsewhere.PID(), syscall.SIGCONT)) }()
	if err := h.label(ctx, true); err != nil {
		return err
	}
	if err := l.await(ctx, "", ran, pods); err != nil {
		return err
	}
	h.during, err = h.world.trickle(ctx, h.others)
	return err
}

// label adds the label that the pods require to all nodes, or removes it.
func (h *hang) label(ctx context.Context, release bool) error {
	nodes := &corev1.NodeList{}
	if err := h.world.super.Client.List(ctx, nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		before := &nodes.Items[i]
		after := before.DeepCopy()
		delete(after.Labels, held)
		if release {
			after.Labels[held] = released
		}
		if err := h.world.super.Client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("label node %s: %w", after.Name, err)
		}
	}
	return nil
}

// report adds the rows of a run.
func (h *hang) report(s *report.Scenario) {
	before := h.before.report(s, "before: ")
	during := h.during.report(s, "while: ")
	ratio := latest(during[whole]) / latest(before[whole])
	s.Add("while to before, create to Running p50", "", ratio, during[whole].P50.Samples).Want("1")
	s.Add("the first of its pods synced up after it continued", "ms", measure.Milliseconds(h.first), 1)
	s.Add("all of its pods synced up after it continued", "ms", measure.Milliseconds(h.last), h.world.opts.HungPods)
}
