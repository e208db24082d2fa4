package chain

import "sync"

// lazy is a part of a tenant that is created when it is first needed. A failed
// creation is repeated at the next call.
type lazy[T any] struct {
	create func() (T, error)

	mu      sync.Mutex // guards all below
	created bool
	closed  bool
	value   T
}

// get returns the part.
func (l *lazy[T]) get() (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.created {
		return l.value, nil
	}
	if l.closed {
		return l.value, errUnknown
	}
	value, err := l.create()
	if err != nil {
		return value, err
	}
	l.value, l.created = value, true
	return value, nil
}

// isCreated reports whether the part exists.
func (l *lazy[T]) isCreated() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.created
}

// close ends the part, if it was created. It is not created any more.
func (l *lazy[T]) close(end func(T)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.created && !l.closed {
		end(l.value)
	}
	l.closed = true
}
