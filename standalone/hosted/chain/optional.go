package chain

import (
	"context"
	"sync"
	"time"
)

// lingering is the time for which an optional part remains after the last of
// its objects was deleted: tests and upgrades soon create another one.
const lingering = 5 * time.Minute

// running is a part of a tenant that has goroutines.
type running interface {
	comparable
	stop()
}

// optional is a part of a tenant that runs while the tenant has objects of a
// certain kind.
type optional[T running] struct {
	count func(context.Context) (int64, error)
	start func() (T, error)

	mu      sync.Mutex // guards all below
	counted bool       // whether part is missing only if there are no objects
	ended   bool
	part    T
}

// get returns the part, or the zero value if there are no objects.
func (o *optional[T]) get(ctx context.Context) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	if o.ended {
		return none, errUnknown
	}
	if o.counted {
		return o.part, nil
	}
	n, err := o.count(ctx)
	if err != nil {
		return none, err
	}
	if n > 0 {
		if o.part, err = o.start(); err != nil {
			return none, err
		}
	}
	o.counted = true
	return o.part, nil
}

// current returns the part if it runs, and the zero value otherwise.
func (o *optional[T]) current() T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.part
}

// created starts the part because an object was created. If that fails, the
// next call of get repeats it.
func (o *optional[T]) created() {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	if o.ended || o.part != none {
		return
	}
	var err error
	o.part, err = o.start()
	o.counted = err == nil
}

// endUnused ends a part if there are no objects.
func (o *optional[T]) endUnused(ctx context.Context, part T) {
	o.mu.Lock()
	n, err := o.count(ctx)
	unused := err == nil && n == 0 && o.part == part
	if unused {
		var none T
		o.part = none // not stopped here: its controllers may wait for mu
	}
	o.mu.Unlock()
	if unused {
		part.stop()
	}
}

// expire ends a part that has not been used. The next call of get starts it
// again.
func (o *optional[T]) expire(part T) {
	o.mu.Lock()
	expired := o.part == part
	if expired {
		var none T
		o.part, o.counted = none, false
	}
	o.mu.Unlock()
	if expired {
		part.stop()
	}
}

// end ends the part for good.
func (o *optional[T]) end() {
	var none T
	o.mu.Lock()
	part := o.part
	o.part, o.ended = none, true
	o.mu.Unlock()
	if part != none {
		part.stop()
	}
}
