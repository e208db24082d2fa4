package views

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// errClosed means that a view is read after it was closed.
var errClosed = errors.New("the views of this tenant are closed")

// Options configure the views of a tenant.
type Options struct {
	// OnFailure is called with the panic of a handler (see [PanicError]), an
	// object that cannot be decoded (see [DecodeError]), or a failed list. The
	// views continue with the next change. It must not block, and may be called
	// concurrently. The error contains nothing of the objects' contents, except
	// by a handler's panic.
	OnFailure func(tenant string, err error)
}

// Views are the views of one tenant.
type Views struct {
	feed    *feed.Feed
	tenant  string
	options Options
	worker  worker

	// ctx ends with Close.
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	views map[viewKey]*view

	// life protects running from starting after Close.
	life    sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// viewKey identifies a view in a tenant. A resource has one for each version
// and one for metadata.
type viewKey struct {
	resource schema.GroupVersionResource
	metadata bool
}

// New returns the views of a tenant. There is no other way to name a tenant.
func New(ctx context.Context, source *feed.Feed, tenant string, options Options) *Views {
	v := &Views{feed: source, tenant: tenant, options: options, views: map[viewKey]*view{}}
	v.ctx, v.cancel = context.WithCancel(ctx)
	v.worker.spawn = v.spawn
	return v
}

// Close ends all views and waits until no handler is running, or the context
// has ended.
func (v *Views) Close(ctx context.Context) error {
	v.life.Lock()
	v.closed = true
	v.life.Unlock()
	v.cancel()
	for _, each := range v.all() {
		each.close()
	}
	ended := make(chan struct{})
	go func() { // ends with the handlers
		defer close(ended)
		v.running.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the handlers of tenant %q: %w", v.tenant, context.Cause(ctx))
	}
}

// Trim frees the objects of views that have no handler and were not read since
// the last call. The next read lists them again.
func (v *Views) Trim() {
	for _, each := range v.all() {
		each.trim()
	}
}

func (v *Views) all() []*view {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]*view, 0, len(v.views))
	for _, each := range v.views {
		all = append(all, each)
	}
	return all
}

// acquire returns the view of a key, for one more factory.
func (v *Views) acquire(key viewKey, create func() *view) *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	found := v.views[key]
	if found == nil {
		found = create()
		found.closed = v.ctx.Err() != nil
		v.views[key] = found
	}
	found.users++
	return found
}

// release ends a view with its last user.
func (v *Views) release(key viewKey) {
	v.mu.Lock()
	found := v.views[key]
	found.users--
	last := found.users == 0
	if last {
		delete(v.views, key)
	}
	v.mu.Unlock()
	if last {
		found.close()
	}
}

// spawn runs a function in a goroutine that Close waits for. It reports false
// after Close.
func (v *Views) spawn(run func()) bool {
	v.life.Lock()
	defer v.life.Unlock()
	if !v.closed {
		v.running.Go(run)
	}
	return !v.closed
}

func (v *Views) fail(err error) {
	if v.options.OnFailure != nil {
		v.options.OnFailure(v.tenant, err)
	}
}
