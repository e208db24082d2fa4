package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// madeBy is a label of namespaces, ofLoad one of pods and their copies.
	madeBy, ofLoad = "vc-bench/made-by", "vc-bench/load"
	// tellEvery is the interval at which progress is printed.
	tellEvery = 5 * time.Second
	// leading is the group of the first pods of their namespaces.
	leading = "leading"
)

// load is a set of pods that are created in a place and watched throughout
// their lives.
type load struct {
	place

	world  *world
	name   string
	cancel context.CancelFunc
	follow sync.WaitGroup
	// broken receives an error when a watch ends.
	broken chan error
	*record
}

// newLoad starts to watch the pods of a load.
func (w *world) newLoad(ctx context.Context, p place) (*load, error) {
	w.loads++
	l := &load{place: p, world: w, name: fmt.Sprintf("l%d", w.loads), record: newRecord(), broken: make(chan error, len(p.targets)+1)}
	ctx, l.cancel = context.WithCancel(ctx)
	if err := l.watch(ctx, target{client: w.super.Client}, l.seenInSuper); err != nil {
		l.close()
		return nil, err
	}
	if p.direct {
		return l, nil
	}
	for _, t := range p.targets {
		if err := l.watch(ctx, t, l.seenInTenant); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// close stops the watches.
func (l *load) close() {
	l.cancel()
	l.follow.Wait()
}

// create creates a pod in a target and records the time of the response.
func (l *load) create(ctx context.Context, to int, group string, i int, change ...func(*corev1.Pod)) error {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.targets[to].namespace, Name: fmt.Sprintf("%s-t%d-%s%d", l.name, to, group, i),
			Labels: map[string]string{ofLoad: l.name},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &l.world.opts.Tokens,
			Containers:                   []corev1.Container{{Name: "main", Image: "example/app:1"}},
		},
	}
	for _, f := range change {
		f(p)
	}
	if err := l.targets[to].client.Create(ctx, p); err != nil {
		return fmt.Errorf("create pod %s: %w", p.Name, err)
	}
	now := time.Now()
	l.noteCreated(p.Name, group, now)
	l.world.lookups.created(l.targets[to], now)
	return nil
}

// burst creates pods as fast as a number of parallel streams can, spread over
// the targets, and waits until they run.
func (l *load) burst(ctx context.Context, targets []int, group string, pods, streams int) error {
	if err := l.pour(ctx, targets, group, pods, streams); err != nil {
		return err
	}
	return l.await(ctx, group, l.running(), pods)
}

// lead creates a pod in each namespace before the measured ones, so that
// apiservers have cached their lookups and the control planes have collected
// their garbage for as long as the measurement lasts.
func (l *load) lead(ctx context.Context, lasts time.Duration) error {
	if err := pause(ctx, l.world.lookups.ready(l.targets, time.Now(), l.world.opts.Lead+lasts)); err != nil {
		return err
	}
	if err := l.burst(ctx, all(l.targets), leading, len(l.targets), len(l.targets)); err != nil {
		return err
	}
	return l.world.collectGarbage(ctx)
}

// pour creates pods as fast as a number of parallel streams can, spread over
// the targets.
func (l *load) pour(ctx context.Context, targets []int, group string, pods, streams int, change ...func(*corev1.Pod)) error {
	workers, ctx := errgroup.WithContext(ctx)
	for first := range streams {
		workers.Go(func() error {
			for i := first; i < pods; i += streams {
				if err := l.create(ctx, targets[i%len(targets)], group, i, change...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

// lasting returns the time it takes to create a number of pods at a rate a
// second.
func lasting(pods int, rate float64) time.Duration {
	return time.Duration(float64(pods) / rate * float64(time.Second))
}

// steady creates pods at a rate a second, whether or not earlier ones run, and
// waits until all of them do.
func (l *load) steady(ctx context.Context, targets []int, group string, pods int, rate float64) error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	workers, workersCtx := errgroup.WithContext(ctx)
	for i := range pods {
		workers.Go(func() error { return l.create(workersCtx, targets[i%len(targets)], group, i) })
		select {
		case <-tick.C:
		case <-workersCtx.Done():
			return errors.Join(workers.Wait(), ctx.Err())
		}
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	return l.await(ctx, group, l.running(), pods)
}

// remove deletes all pods and waits until they are gone.
func (l *load) remove(ctx context.Context) error {
	workers, workersCtx := errgroup.WithContext(ctx)
	for _, t := range l.targets {
		workers.Go(func() error {
			err := t.client.DeleteAllOf(workersCtx, &corev1.Pod{}, client.InNamespace(t.namespace), client.MatchingLabels{ofLoad: l.name})
			if err != nil {
				return fmt.Errorf("delete the pods in %s: %w", t.namespace, err)
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	return l.await(ctx, "", l.removed(), l.came("", created))
}

// await waits until a number of pods of a group have reached a moment; the
// empty group is all pods. It fails when there is no progress.
func (l *load) await(ctx context.Context, group string, m moment, n int) error {
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	stalled := time.NewTimer(patience)
	defer stalled.Stop()
	for last := -1; ; {
		changed := l.changes()
		have := l.came(group, m)
		if have >= n {
			return nil
		}
		if have != last {
			last = have
			stalled.Reset(patience)
		}
		select {
		case <-changed:
		case <-tell.C:
			l.world.progress.sayf("%s: %d of %d pods %s", l.place.name, have, n, m)
		case <-stalled.C:
			return fmt.Errorf("%s: %d of %d pods %s, without progress for %s", l.place.name, have, n, m, patience)
		case err := <-l.broken:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
