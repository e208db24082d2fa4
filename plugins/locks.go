package plugins

import (
	"context"
	"sync"
)

// Locker is the lock of one tenant.
type Locker interface {
	// Lock waits until the lock is free and takes it, or returns the context's error if that ends first.
	Lock(ctx context.Context) error
	// Unlock gives the lock back.
	Unlock()
}

// TenantLocks holds a lock for each tenant. The zero value is ready.
type TenantLocks struct {
	mu    sync.RWMutex
	locks map[string]lock
}

// lock is taken by whoever has put something into it.
type lock chan struct{}

// Of is the lock of a tenant, made when it is first asked for.
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

// Forget drops the lock of a tenant that is gone, with all that belonged to it.
func (t *TenantLocks) Forget(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.locks, tenant)
}

// Lock takes the lock.
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

// Unlock gives the lock back.
func (l lock) Unlock() { <-l }
