package chain

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// patience is the time for which requests wait after an optional part was
// started. If its objects cannot be read by then, requests fail at once.
const patience = 10 * time.Second

// background has the goroutines of an optional part.
type background struct {
	synced   func() bool     // reports whether the part has read its objects
	patience context.Context // ends when it has, or is late
	cancel   context.CancelFunc
	running  sync.WaitGroup
	unused   *time.Timer // ends the part after the last object
}

// run runs controllers until the part is stopped. It calls late if the part has
// not read its objects in time.
func (b *background) run(life context.Context, synced func() bool, late func(), controllers ...func(context.Context)) {
	ctx, cancel := context.WithCancel(life)
	b.cancel, b.synced = cancel, synced
	for _, controller := range controllers {
		b.running.Go(func() { controller(ctx) })
	}
	waits, read := context.WithTimeout(ctx, patience)
	b.patience = waits
	b.running.Go(func() {
		defer read()
		if !cache.WaitForCacheSync(waits.Done(), synced) && ctx.Err() == nil {
			late()
		}
	})
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

// stop ends the controllers. Requests in progress are not interrupted.
func (b *background) stop() {
	b.unused.Stop()
	b.cancel()
	b.running.Wait()
}
