package chain

import "sync"

// lazy is a part of a tenant that is created when it is first needed. A failed
// creation is repeated at the next call.
type lazy[T any] struct {
	create func() (T, error)

	mu      sync.Mutex // guards all below
	created bool
	value   T
}

// get returns the part.
func (l *lazy[T]) get() (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.created {
		return l.value, nil
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
