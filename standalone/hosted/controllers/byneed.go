package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const (
	// defaultLinger is how long a controller runs on after it was last needed.
	defaultLinger = time.Minute
	// pause is the minimum time between two looks at what has changed. Looks take
	// at most one lookShare-th of the time, and checks whether a controller is
	// still needed one checkShare-th.
	pause      = 20 * time.Millisecond
	lookShare  = 20
	checkShare = 200
	// checkLingers is the number of lingers after which a controller is checked again
	// at the latest: on a busy machine, a cheap check can take long.
	checkLingers = 10
	// lookBurst is how far looks can be ahead of their share: a single look can
	// take long on a busy machine, and must not delay the next change.
	lookBurst = 10 * time.Second
	// A controller that ends by itself starts again after shortestBackoff, and
	// twice as long after each of the next times.
	shortestBackoff = time.Second
	longestBackoff  = 5 * time.Minute
)

// Options configures the controllers of a tenant that run by need.
type Options struct {
	// Tenant identifies the tenant in the store.
	Tenant  string
	Cluster Cluster
	// Views are the informers of the tenant.
	Views *views.Views
	// Changes tells of the changes in the store.
	Changes *Changes
	// OnFailure is called when a controller fails, which will start again.
	OnFailure func(tenant string, err error)
	// Linger is how long a controller runs on after it was last needed; a minute
	// when zero.
	Linger time.Duration
}

// ByNeed runs each controller of a tenant while it is needed. A controller that
// fails stops no other.
type ByNeed struct {
	Options

	tenant string
	cancel context.CancelFunc
	done   chan struct{}
	// parts are used by run alone.
	parts []*part
	ended chan *part

	changed chan struct{}
	mu      sync.Mutex // guards all below
	// noted are the resources that have changed; all with the empty one.
	noted map[string]bool
	// running has the times since which controllers run.
	running map[string]time.Time
	// failed has the last error of controllers that did not work since.
	failed map[string]error
}

// part is one controller.
type part struct {
	controller Controller
	need       *need

	// stop ends the controller; nil while it is not running.
	stop func()
	// err is set when it has ended.
	err     error
	started time.Time
	// dirty means that resources have changed since the need was last found out.
	// Without a change, the need is the same.
	dirty bool
	// due is the earliest time at which the need is found out again.
	due    time.Time
	needed time.Time // the last time
	// failures counts those since the controller last worked.
	failures int
}

// StartByNeed starts the controllers that are needed, now and whenever that
// changes, until Stop.
func StartByNeed(ctx context.Context, controllers []Controller, options Options) *ByNeed {
	b := &ByNeed{
		Options: options, tenant: options.Tenant, done: make(chan struct{}), ended: make(chan *part),
		changed: make(chan struct{}, 1), noted: map[string]bool{}, running: map[string]time.Time{}, failed: map[string]error{},
	}
	if b.Linger == 0 {
		b.Linger = defaultLinger
	}
	known := needs()
	for _, controller := range controllers {
		n := known[controller.Name]
		if n == nil {
			n = &need{pending: func(context.Context, *state) (bool, error) { return true, nil }}
		}
		b.parts = append(b.parts, &part{controller: controller, need: n})
	}
	ctx, b.cancel = context.WithCancel(ctx)
	b.note("")
	options.Changes.add(b)
	go b.run(ctx)
	return b
}

// Failed never receives: controllers start again.
func (*ByNeed) Failed() <-chan error { return nil }

// Running returns the names of the controllers that run, in alphabetical order.
func (b *ByNeed) Running() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.running))
}

// Failing returns the errors of controllers that do not work, by their names. A
// controller works again when it has run as long as it would linger, or is not
// needed any more.
func (b *ByNeed) Failing() map[string]error {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.failed, func(name string, _ error) bool {
		since, runs := b.running[name]
		return runs && time.Since(since) >= b.Linger
	})
	return maps.Clone(b.failed)
}

// setFailed records the last error of a controller; nil if it works.
func (b *ByNeed) setFailed(p *part, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		delete(b.failed, p.controller.Name)
	} else {
		b.failed[p.controller.Name] = err
	}
}

func (b *ByNeed) setRunning(p *part, running bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if running {
		b.running[p.controller.Name] = time.Now()
	} else {
		delete(b.running, p.controller.Name)
	}
}

// Stop stops all controllers.
func (b *ByNeed) Stop() {
	b.Changes.remove(b)
	b.cancel()
	<-b.done
}

// note records the change of a resource; of all if it is empty.
func (b *ByNeed) note(resource string) {
	b.mu.Lock()
	b.noted[resource] = true
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// take returns the resources that have changed; nil for all.
func (b *ByNeed) take() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	noted := b.noted
	b.noted = map[string]bool{}
	if noted[""] {
		return nil
	}
	return noted
}

// run starts and stops controllers until its context ends. It has no timer
// while none is running and none has failed.
func (b *ByNeed) run(ctx context.Context) {
	defer close(b.done)
	defer b.stopAll()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var looks lookTime
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-b.ended:
			b.end(p)
			b.look(ctx, none())
		case <-b.changed:
			begin := time.Now()
			b.look(ctx, b.take())
			idle(ctx, max(pause, looks.spend(begin, time.Now())))
		case <-timer.C:
			b.look(ctx, none())
		}
		timer.Stop()
		if next, ok := b.next(); ok {
			timer.Reset(max(pause, time.Until(next)))
		}
	}
}

// lookTime limits how much of the time looks take. The zero value is ready to
// use.
type lookTime struct {
	// earned is when the looks so far will be one lookShare-th of the time.
	earned time.Time
}

// spend counts a look, and returns how long the next one has to wait.
func (l *lookTime) spend(begin, end time.Time) time.Duration {
	if l.earned.Before(begin) {
		l.earned = begin
	}
	l.earned = l.earned.Add(lookShare * end.Sub(begin))
	return l.earned.Sub(end) - lookBurst
}

// none is the set of changed resources when none has changed.
func none() map[string]bool { return map[string]bool{} }

// idle waits, at most until the context ends.
func idle(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// next returns the time of the next look without a change.
func (b *ByNeed) next() (next time.Time, ok bool) {
	for _, p := range b.parts {
		if p.dirty && (!ok || p.due.Before(next)) {
			next, ok = p.due, true
		}
	}
	return next, ok
}

// look starts and stops controllers after changes of resources; nil considers
// all.
func (b *ByNeed) look(ctx context.Context, changed map[string]bool) {
	for _, p := range b.parts {
		late := p.dirty // has a change that was not considered
		p.dirty = p.dirty || changed == nil || p.need.concernsAny(changed)
		if ctx.Err() != nil || !p.dirty || time.Now().Before(p.due) {
			continue
		}
		s := &state{feed: b.Changes.feed, tenant: b.tenant, authority: b.Cluster.Authority.CertPEM}
		if !late && p.stop == nil {
			s.changed = changed
		}
		b.consider(ctx, p, s)
	}
}

// consider starts or stops a controller.
func (b *ByNeed) consider(ctx context.Context, p *part, s *state) {
	begin := time.Now()
	needed, err := p.isNeeded(ctx, s)
	now := time.Now()
	check := now.Add(b.untilCheck(now.Sub(begin)))
	switch {
	case err != nil:
		b.fail(ctx, fmt.Errorf("find out whether the controller %s is needed: %w", p.controller.Name, err))
		b.backOff(p, err)
	case needed && p.stop == nil:
		p.dirty, p.needed, p.due = false, now, check
		b.start(ctx, p)
	case needed:
		p.dirty, p.needed, p.due = false, now, check
	case p.stop == nil:
		p.dirty, p.failures = false, 0
		b.setFailed(p, nil)
	case now.Sub(p.needed) >= b.Linger:
		p.dirty = false // until it has ended
		p.stop()
	default:
		p.due = check
	}
}

// untilCheck returns when a controller is checked again whose check has taken a
// while.
func (b *ByNeed) untilCheck(took time.Duration) time.Duration {
	return min(max(b.Linger/2, checkShare*took), checkLingers*b.Linger)
}

// isNeeded reports whether the controller is needed. A panic while it reads the
// objects of the tenant is an error.
func (p *part) isNeeded(ctx context.Context, s *state) (needed bool, err error) {
	defer views.Recovered(func(panicked error) { err = panicked })
	return p.need.arises(ctx, s)
}

// concernsAny reports whether any of the changed resources concerns the need.
func (n *need) concernsAny(changed map[string]bool) bool {
	for resource := range changed {
		if n.concerns(resource) {
			return true
		}
	}
	return false
}

// start runs a controller in a goroutine of its own.
func (b *ByNeed) start(ctx context.Context, p *part) {
	ctx, cancel := context.WithCancel(ctx)
	p.stop, p.err, p.started = cancel, nil, time.Now()
	b.setRunning(p, true)
	go func() { // until stop
		defer cancel()
		p.err = b.work(ctx, p.controller)
		if ctx.Err() != nil {
			p.err = nil // it was stopped
		}
		b.ended <- p
	}()
}

// end records that a controller has ended.
func (b *ByNeed) end(p *part) {
	p.stop, p.dirty, p.due = nil, true, time.Time{}
	b.setRunning(p, false)
	if p.err == nil {
		p.failures = 0
		b.setFailed(p, nil)
		return
	}
	b.report(fmt.Errorf("run the controller %s: %w", p.controller.Name, p.err))
	if time.Since(p.started) > longestBackoff {
		p.failures = 0
	}
	b.backOff(p, p.err)
}

func (b *ByNeed) backOff(p *part, err error) {
	b.setFailed(p, err)
	p.due = time.Now().Add(min(shortestBackoff<<min(p.failures, 16), longestBackoff))
	p.failures++
}

func (b *ByNeed) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		b.report(err)
	}
}

func (b *ByNeed) report(err error) {
	if b.OnFailure != nil {
		b.OnFailure(b.tenant, err)
	}
}

// stopAll stops all controllers and waits for them.
func (b *ByNeed) stopAll() {
	running := 0
	for _, p := range b.parts {
		if p.stop != nil {
			p.stop()
			running++
		}
	}
	for range running {
		b.end(<-b.ended)
	}
}

var errExited = errors.New("it exited by itself")

// work builds and runs a controller. A panic ends this controller only.
func (b *ByNeed) work(ctx context.Context, controller Controller) (err error) {
	defer views.Recovered(func(panicked error) { err = panicked })
	factory := b.Views.NewFactory()
	defer factory.Close()
	env, err := onViews(b.Cluster, factory)
	if err != nil {
		return err
	}
	started := sync.OnceFunc(func() { close(env.started) })
	defer started() // the collector and the quota controller wait for it, whatever their context
	run, err := controller.Build(ctx, env)
	if err != nil {
		return err
	}
	env.informers.Start(ctx.Done())
	started()
	run(ctx)
	return errExited
}
