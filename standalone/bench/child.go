package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/virtualcluster/virtualcluster/standalone/app"
	"github.com/virtualcluster/virtualcluster/standalone/internal/childprocess"
)

// patience limits how long a step of a measurement takes.
const patience = 5 * time.Minute

// The first argument of a child, which selects its program.
const (
	hostChild      = "host"
	etcdChild      = "etcd"
	apiserverChild = "apiserver"
	syncerChild    = "syncer"
)

// Child runs the program of a child, and returns its exit code. The default is
// vc-standalone. exit exits the process.
func Child(args []string, exit func(code int)) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	switch args[0] {
	case hostChild:
		err = serveHost(ctx, args[1], exit)
	case etcdChild:
		err = serveEtcd(ctx, args[1])
	case syncerChild:
		err = serveSyncer(ctx, args[1])
	case apiserverChild:
		err = serveAPIServer(ctx, args[1:])
	default:
		return app.Main(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startChild starts a child, whose data is not needed any more when end is
// called. It does not wait until the child is ready.
func startChild(ctx context.Context, args ...string) (p *childprocess.Process, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	p, err = childprocess.Start(ctx, args...)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return p, func() {
		cancel()                                      // kills it
		_, _ = p.AwaitEnd(context.WithoutCancel(ctx)) // reports only that it was killed
	}, nil
}

// startReady does the same, and waits until the child is ready.
func startReady(ctx context.Context, args ...string) (p *childprocess.Process, end func(), err error) {
	p, end, err = startChild(ctx, args...)
	if err != nil {
		return nil, nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := p.AwaitReady(waiting); err != nil {
		end()
		return nil, nil, err
	}
	return p, end, nil
}

// until waits for the condition. It ignores errors of the condition until the
// end: a server that starts refuses connections.
func until(ctx context.Context, interval time.Duration, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		done, err := condition()
		if done && err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("wait until %s: %w", what, context.Cause(ctx)), err)
		}
	}
}

// settled returns a figure when it has not changed for a while, give or take
// one percent.
func settled(ctx context.Context, settle time.Duration, measure func() (float64, error)) (value float64, err error) {
	var reference float64
	since := time.Now()
	err = until(ctx, max(settle/10, poll), "memory no longer changes", func() (bool, error) {
		var err error
		if value, err = measure(); err != nil {
			return false, err
		}
		if value > reference*1.01 || value < reference*0.99 {
			reference, since = value, time.Now()
		}
		return time.Since(since) >= settle, nil
	})
	return value, err
}
