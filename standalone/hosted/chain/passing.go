package chain

import (
	"sync"
	"time"
)

// passing is a part of a tenant that exists while it is used, and for a while
// afterwards.
type passing[T any] struct {
	create func() (T, error)
	end    func(T)
	// lingering is the time for which an unused part remains.
	lingering time.Duration

	mu      sync.Mutex // guards all below
	created bool
	closed  bool
	value   T
	users   int
	unused  *time.Timer
}

// use returns the part, which exists until the returned function is called.
func (p *passing[T]) use() (part T, release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return part, nil, errUnknown
	}
	if !p.created {
		if p.value, err = p.create(); err != nil {
			return part, nil, err
		}
		p.created = true
	}
	p.users++
	if p.unused != nil {
		p.unused.Stop()
	}
	return p.value, p.release, nil
}

func (p *passing[T]) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	if p.users == 0 && !p.closed {
		p.unused = time.AfterFunc(p.lingering, p.endUnused)
	}
}

func (p *passing[T]) endUnused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 {
		p.endNow()
	}
}

// close ends the part, which is not created any more.
func (p *passing[T]) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.unused != nil {
		p.unused.Stop()
	}
	p.endNow()
}

func (p *passing[T]) endNow() {
	if p.created {
		p.end(p.value)
	}
	var none T
	p.value, p.created = none, false
}
