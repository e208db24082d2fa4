package chain

import (
	"context"
	"sync"
	"time"
)

// lingering is the time for which a server of custom resources remains after
// the last definition was deleted: tests and upgrades soon create another one.
const lingering = 5 * time.Minute

// extensions has the server of custom resources of a tenant while the tenant
// has definitions of them.
type extensions struct {
	count func(context.Context) (int64, error)
	start func() (*customResources, error)

	mu      sync.Mutex // guards all below
	counted bool       // whether server is nil only if there are no definitions
	ended   bool
	server  *customResources
}

// get returns the server, or nil if the tenant has no definitions.
func (e *extensions) get(ctx context.Context) (*customResources, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return nil, errUnknown
	}
	if e.counted {
		return e.server, nil
	}
	n, err := e.count(ctx)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		if e.server, err = e.start(); err != nil {
			return nil, err
		}
	}
	e.counted = true
	return e.server, nil
}

// defined starts the server because a definition was created. If that fails,
// the next call of get repeats it.
func (e *extensions) defined() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.server != nil {
		return
	}
	var err error
	e.server, err = e.start()
	e.counted = err == nil
}

// endUnused ends a server if there are no definitions.
func (e *extensions) endUnused(ctx context.Context, server *customResources) {
	e.mu.Lock()
	n, err := e.count(ctx)
	unused := err == nil && n == 0 && e.server == server
	if unused {
		e.server = nil // not stopped here: its controllers may wait for mu
	}
	e.mu.Unlock()
	if unused {
		server.stop()
	}
}

// end ends the server for good.
func (e *extensions) end() {
	e.mu.Lock()
	server := e.server
	e.server, e.ended = nil, true
	e.mu.Unlock()
	if server != nil {
		server.stop()
	}
}
