package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	neverReady = "never-ready"
	// creators is the number of clients that create the pods that wait.
	creators = 16
)

// networkNeverReady measures what many pods cost that wait for a network whose
// type no provider offers, and how long a pod of another network takes meanwhile.
func (w *world) networkNeverReady(ctx context.Context, s *report.Scenario, t *local.Tenant) error {
	if err := w.withNetworks(ctx, []*local.Tenant{t}); err != nil {
		return err
	}
	before, err := w.settleReady(ctx, 1)
	if err != nil {
		return err
	}
	n := flatNetwork(neverReady)
	n.Spec = networkv1.NetworkSpec{Type: networkv1.TypeVPC, VPCID: "none"}
	if err := t.Client.Create(ctx, n); err != nil {
		return fmt.Errorf("create a network: %w", err)
	}
	w.progress.sayf("creating pods that wait for a network, %d of them", w.opts.WaitingPods)
	began := time.Now()
	if err := createWaiting(ctx, t, w.opts.WaitingPods); err != nil {
		return err
	}
	took, err := w.createNetworksOf(ctx, t, "beside", 1)
	if err != nil {
		return err
	}
	all := time.Since(began)
	after, err := w.settleReady(ctx, 1)
	if err != nil {
		return err
	}
	during, err := w.stretch(ctx, after)
	if err != nil {
		return err
	}
	of := fmt.Sprintf(", %d pods on a network that never gets ready", w.opts.WaitingPods)
	s.Add("memory of vc-syncer before"+of, "MiB", float64(before.Resident)/measure.MiB, 1)
	s.Add("memory of vc-syncer"+of, "MiB", float64(during.end.Resident)/measure.MiB, 1)
	s.Add("processor time of vc-syncer"+of, "ms", measure.Milliseconds(after.CPU-before.CPU), 1)
	s.Add("processor time of vc-syncer a second afterwards"+of, "ms", measure.Milliseconds(during.cpu)/w.opts.IdleWindow.Seconds(), 1)
	s.Add("time to create"+of, "ms", measure.Milliseconds(all), 1)
	s.AddLatency("network and its first pod created right after"+of+", to the copy", took.used)
	return nil
}

// createWaiting creates pods on the network that never gets ready.
func createWaiting(ctx context.Context, t *local.Tenant, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range count {
		group.Go(func() error {
			pod := podOn(neverReady)
			pod.Name = fmt.Sprint("waits-", i)
			if err := t.Client.Create(ctx, pod); err != nil {
				return fmt.Errorf("create a pod that waits: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}
