package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/virtualcluster/virtualcluster/test/bench/report"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// requests counts the requests of the syncer for a pod. Pods are created one by
// one in a system without other work.
func (w *world) requests(ctx context.Context) error {
	tenants, err := w.tenants(ctx, 1)
	if err != nil {
		return err
	}
	direct, err := w.directly(ctx, 1)
	if err != nil {
		return err
	}
	pods := w.opts.RequestPods
	s := &report.Scenario{Name: "requests", Size: fmt.Sprintf("%d pods, one at a time, in 1 tenant", pods)}
	for run := range w.opts.Runs {
		w.progress.sayf("run %d of %d", run+1, w.opts.Runs)
		straight, err := w.oneByOne(ctx, direct, pods)
		if err != nil {
			return err
		}
		via, err := w.oneByOne(ctx, ofTenants(tenants), pods)
		if err != nil {
			return err
		}
		via.report(s, pods)
		via.stages.report(s, "")
		straight.stages.report(s, "directly: ")
	}
	return w.publish(s)
}

// series is the result of pods that were created one by one.
type series struct {
	stages stages
	// made has the requests until the pods ran, removed those for their
	// deletion.
	made, removed local.Requests
}

// oneByOne creates each pod when the one before runs, and deletes them.
func (w *world) oneByOne(ctx context.Context, p place, pods int) (*series, error) {
	l, err := w.newLoad(ctx, p)
	if err != nil {
		return nil, err
	}
	defer l.close()
	out := &series{}
	out.made, err = w.sent(ctx, p, func() error {
		for i := range pods {
			if err := l.create(ctx, 0, "", i); err != nil {
				return err
			}
			if err := l.await(ctx, "", p.running(), i+1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.stages = l.stages("")
	out.removed, err = w.sent(ctx, p, func() error { return l.remove(ctx) })
	return out, err
}

// sent returns the requests that the syncer sends because of changes in a
// place; none if the place is the super cluster itself.
func (w *world) sent(ctx context.Context, p place, do func() error) (local.Requests, error) {
	if p.direct {
		return nil, do()
	}
	before, err := w.settle(ctx)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, err := w.settle(ctx)
	return after.Requests.Since(before.Requests), err
}

// report adds the requests of a run for each pod.
func (o *series) report(s *report.Scenario, pods int) {
	for _, part := range []struct {
		name string
		sent local.Requests
		goal string
	}{{"create to Running", o.made, "3"}, {"removal", o.removed, "2"}} {
		of := func(sum float64) float64 { return sum / float64(pods) }
		writes, events, reads := sort(part.sent)
		s.Add("writes a pod, "+part.name, "", of(writes), pods).Want(part.goal)
		s.Add("events a pod, "+part.name, "", of(events), pods)
		s.Add("reads a pod, "+part.name, "", of(reads), pods).Want("0")
		for _, request := range slices.Sorted(maps.Keys(part.sent)) {
			s.Add("  "+part.name+": "+request, "", of(part.sent[request]), pods)
		}
	}
}

// sort adds up writes, writes of events, and reads.
func sort(sent local.Requests) (writes, events, reads float64) {
	for request, n := range sent {
		verb, resource, _ := strings.Cut(request[strings.Index(request, " ")+1:], " ")
		switch {
		case verb == "get" || verb == "list":
			reads += n
		case resource == "events":
			events += n
		default:
			writes += n
		}
	}
	return writes, events, reads
}
