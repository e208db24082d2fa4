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
	// madeBy is a label on namespaces, ofLoad one on pods and their copies.
	madeBy, ofLoad = "vc-bench/made-by", "vc-bench/load"
	// tellEvery is how often is told how far a load is.
	tellEvery = 5 * time.Second
	// leading is the group of the first pods of their namespaces, which run, and the garbage behind them is collected, in the time led.
	leading, led = "leading", 5 * time.Second
)

// load is pods that are created in a place and watched through their lives.
type load struct {
	place

	world  *world
	name   string
	cancel context.CancelFunc
	follow sync.WaitGroup
	// broken gets an error when a watch ends.
	broken chan error
	*record
}

// newLoad begins to watch for the pods of a load.
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

// close ends the watches.
func (l *load) close() {
	l.cancel()
	l.follow.Wait()
}

// create creates a pod in a target and notes when that was answered.
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
		return fmt.Errorf("creating pod %s: %w", p.Name, err)
	}
	now := time.Now()
	l.noteCreated(p.Name, group, now)
	l.world.lookups.created(l.targets[to], now)
	return nil
}

// burst creates so many pods as fast as so many streams can, spread over targets, and waits until they run.
func (l *load) burst(ctx context.Context, targets []int, group string, pods, streams int) error {
	if err := l.pour(ctx, targets, group, pods, streams); err != nil {
		return err
	}
	return l.await(ctx, group, l.running(), pods)
}

// lead has a pod in each namespace before those whose latency is measured for so long, so that what apiservers look up for the first is
// remembered for the others, and the control planes without garbage then.
func (l *load) lead(ctx context.Context, lasts time.Duration) error {
	if err := pause(ctx, l.world.lookups.ready(l.targets, time.Now(), led+lasts)); err != nil {
		return err
	}
	if err := l.burst(ctx, all(l.targets), leading, len(l.targets), len(l.targets)); err != nil {
		return err
	}
	return l.world.collectGarbage(ctx)
}

// pour creates so many pods as fast as so many streams can, spread over targets.
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

// lasting is how long it takes to create so many pods at a rate a second.
func lasting(pods int, rate float64) time.Duration {
	return time.Duration(float64(pods) / rate * float64(time.Second))
}

// steady creates so many pods at a rate a second, whether or not the ones before run, and waits until all do.
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
				return fmt.Errorf("deleting the pods in %s: %w", t.namespace, err)
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return err
	}
	return l.await(ctx, "", l.removed(), l.came("", created))
}

// await waits until so many pods of a group have come to a moment; the empty group is all pods. It fails when nothing moves.
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
			return fmt.Errorf("%s: %d of %d pods %s, and none followed for %s", l.place.name, have, n, m, patience)
		case err := <-l.broken:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
