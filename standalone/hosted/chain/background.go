package chain

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// patience is the time for which requests wait after an optional part was
// started. If its objects cannot be read by then, requests fail at once.
const patience = 10 * time.Second

// restartDelay is the time after which a part is ended whose controller has
// failed. The next request starts it again.
const restartDelay = 10 * time.Second

var errExited = errors.New("it exited by itself")

// background has the goroutines of an optional part.
type background struct {
	synced   func() bool     // reports whether the part has read its objects
	patience context.Context // ends when it has, or is late
	cancel   context.CancelFunc
	running  sync.WaitGroup
	unused   *time.Timer // ends the part after the last object
}

// supervision is what becomes of a part that does not work.
type supervision struct {
	// late is called if the part has not read its objects in time.
	late func()
	// failed is called when a controller has failed.
	failed func(error)
	// expire ends the part, which begins again with the next request.
	expire func()
}

// run runs controllers until the part is stopped.
func (b *background) run(life context.Context, synced func() bool, on supervision, controllers ...func(context.Context)) {
	ctx, cancel := context.WithCancel(life)
	b.cancel, b.synced = cancel, synced
	var expire sync.Once
	for _, controller := range controllers {
		b.running.Go(func() {
			if err := control(ctx, controller); ctx.Err() == nil {
				on.failed(err)
				expire.Do(func() { time.AfterFunc(restartDelay, on.expire) })
			}
		})
	}
	waits, read := context.WithTimeout(ctx, patience)
	b.patience = waits
	b.running.Go(func() {
		defer read()
		if !cache.WaitForCacheSync(waits.Done(), synced) && ctx.Err() == nil {
			on.late()
		}
	})
}

// control runs a controller until the context ends. Before that, it returns an
// error, also after a panic, which upstream's controllers may swallow.
func control(ctx context.Context, controller func(context.Context)) (err error) {
	defer views.Recovered(func(panicked error) { err = panicked })
	controller(ctx)
	return errExited
}

// ready waits until the part has read its objects. Until then it is not known
// which resources exist, and clients must not take one for missing.
func (b *background) ready(ctx context.Context, late error) error {
	if b.synced() {
		return nil
	}
	select {
	case <-b.patience.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !b.synced() {
		return late
	}
	return nil
}

// isReady reports whether the part has read its objects, for which it waits like
// a request.
func (b *background) isReady(ctx context.Context) bool { return b.ready(ctx, errUnknown) == nil }

// stop ends the controllers. Requests in progress are not interrupted.
func (b *background) stop() {
	b.unused.Stop()
	b.cancel()
	b.running.Wait()
}
