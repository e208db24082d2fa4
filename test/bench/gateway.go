package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// gatewayWorkers send requests at the same time.
	gatewayWorkers = 16
	// gatewayWatches is below the limits of a caller and of a control plane.
	gatewayWatches = 400
)

// gateway measures what vc-gateway adds to requests of a tenant, in front of a
// real apiserver.
func (w *world) gateway(ctx context.Context) error {
	tenants, err := w.tenants(ctx, 1)
	if err != nil {
		return err
	}
	token, err := prepare(ctx, tenants[0])
	if err != nil {
		return err
	}
	s := &report.Scenario{Name: "gateway", Size: fmt.Sprintf("%d requests one by one, %d at a time for %s, %d tenants",
		w.opts.GatewayRequests, gatewayWorkers, w.opts.GatewayWindow, w.opts.GatewayTenants)}
	s.Notef("the gateway, the apiserver and the clients share the processors, and so the requests a second")
	for run := range w.opts.Runs {
		w.progress.sayf("run %d of %d", run+1, w.opts.Runs)
		for _, with := range []credentials{{kind: "certificate"}, {kind: "token", token: token}} {
			if err := w.throughGateway(ctx, s, tenants[0], with); err != nil {
				return err
			}
		}
	}
	if err := w.manyTenants(ctx, s); err != nil {
		return err
	}
	return w.publish(s)
}

// throughGateway measures a gateway that is started for it, so that its memory is
// that of the watches alone.
func (w *world) throughGateway(ctx context.Context, s *report.Scenario, t *local.Tenant, with credentials) (err error) {
	g, err := w.startGateway(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	p, err := g.pair(t, with)
	if err != nil {
		return err
	}
	if err := p.await(ctx); err != nil {
		return err
	}
	if err := g.watches(ctx, s, p); err != nil {
		return err
	}
	if err := p.latency(ctx, s, w.opts.GatewayRequests); err != nil {
		return err
	}
	return g.throughput(ctx, s, p, w.opts.GatewayWindow, w.super.PID())
}

// await waits until the gateway knows the tenant, and its apiserver the
// permissions of the token.
func (p pair) await(ctx context.Context) error {
	for _, each := range []*way{p.direct, p.through} {
		var last error
		err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
			last = each.get(ctx)
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait for %s: %w", each.name, last)
		}
	}
	return nil
}

// latency measures requests one by one, alternately on both ways, so that other
// work of the machine slows both.
func (p pair) latency(ctx context.Context, s *report.Scenario, requests int) error {
	times := map[*way][]time.Duration{}
	for range requests {
		for _, each := range []*way{p.direct, p.through} {
			began := time.Now()
			if err := each.get(ctx); err != nil {
				return err
			}
			times[each] = append(times[each], time.Since(began))
		}
	}
	for _, each := range []*way{p.direct, p.through} {
		slices.Sort(times[each])
		s.AddLatency("get by "+each.name, times[each])
	}
	for of, goal := range map[int]string{50: "≤ 0.2", 99: "≤ 1"} {
		added := measure.Percentile(times[p.through], of) - measure.Percentile(times[p.direct], of)
		s.Add(fmt.Sprintf("added to a get by %s, p%d", p.kind, of), "ms", measure.Milliseconds(added), requests).Want(goal)
	}
	return nil
}

// throughput measures as many requests as the processors can do, on both ways.
func (g *gateway) throughput(ctx context.Context, s *report.Scenario, p pair, window time.Duration, apiserver int) error {
	ofServer, err := measure.UsageOf(apiserver)
	if err != nil {
		return err
	}
	direct, err := p.direct.flood(ctx, window)
	if err != nil {
		return err
	}
	afterServer, err := measure.UsageOf(apiserver)
	if err != nil {
		return err
	}
	before, err := g.usage()
	if err != nil {
		return err
	}
	through, err := p.through.flood(ctx, window)
	if err != nil {
		return err
	}
	after, err := g.usage()
	if err != nil {
		return err
	}
	own := measure.Milliseconds(after.CPU-before.CPU) / float64(through)
	s.Add("requests a second by "+p.direct.name, "", float64(direct)/window.Seconds(), direct)
	s.Add("requests a second by "+p.through.name, "", float64(through)/window.Seconds(), through)
	s.Add("requests a second by "+p.kind+", through the gateway to directly", "", float64(through)/float64(direct), through).Want("≥ 0.8")
	s.Add("processor time of the gateway for a request by "+p.kind, "ms", own, through).Want("≤ 0.15")
	s.Add("processor time of the apiserver for a request by "+p.kind+", directly", "ms",
		measure.Milliseconds(afterServer.CPU-ofServer.CPU)/float64(direct), direct)
	return nil
}

// flood sends requests for a while, and returns their number.
func (w *way) flood(ctx context.Context, window time.Duration) (int, error) {
	var sent atomic.Int64
	end := time.Now().Add(window)
	group, ctx := errgroup.WithContext(ctx)
	for range gatewayWorkers {
		group.Go(func() error {
			for time.Now().Before(end) {
				if err := w.get(ctx); err != nil {
					return err
				}
				sent.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return int(sent.Load()), err
}

// watches measures the memory that open watches take in the gateway.
func (g *gateway) watches(ctx context.Context, s *report.Scenario, p pair) error {
	before, err := g.usage()
	if err != nil {
		return err
	}
	open, end := context.WithCancel(ctx)
	defer end()
	for range gatewayWatches {
		if err := p.through.watch(open); err != nil {
			return err
		}
	}
	after, err := g.usage()
	if err != nil {
		return err
	}
	s.Add("resident memory of the gateway for an open watch by "+p.kind, "KiB",
		float64(after.Resident-before.Resident)/1024/gatewayWatches, gatewayWatches).Want("≤ 30")
	return nil
}
