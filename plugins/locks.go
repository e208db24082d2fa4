package plugins

import (
	"context"
	"sync"
)

// Locker is the lock of one tenant.
type Locker interface {
	// Lock waits until the lock is free and acquires it, or returns the cause
	// if ctx is done first.
	Lock(ctx context.Context) error
	// Unlock releases the lock.
	Unlock()
}

// TenantLocks holds a lock for each tenant. The zero value is ready to use.
type TenantLocks struct {
	mu    sync.RWMutex
	locks map[string]lock
}

// lock is a semaphore of size one: the holder's value fills the channel.
type lock chan struct{}

// Of returns the lock of a tenant, and creates it on first use.
func (t *TenantLocks) Of(tenant string) Locker {
	t.mu.RLock()
	l, ok := t.locks[tenant]
	t.mu.RUnlock()
	if ok {
		return l
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.locks[tenant]; ok {
		return l
	}
	if t.locks == nil {
		t.locks = map[string]lock{}
	}
	l = make(lock, 1)
	t.locks[tenant] = l
	return l
}

// Forget deletes the lock of a tenant that was deleted.
func (t *TenantLocks) Forget(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.locks, tenant)
}

// Lock implements Locker.
func (l lock) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unlock implements Locker.
func (l lock) Unlock() { <-l }
