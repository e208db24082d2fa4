package caches

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// KeyLocks provides a lock for each object, which exists while it is used. The
// zero value is ready to use.
type KeyLocks struct {
	mu   sync.Mutex
	held map[kinds.ObjectKey]*keyLock
}

// keyLock is the lock of one object, with the number of goroutines that hold it
// or wait for it.
type keyLock struct {
	sync.Mutex
	users int
}

// Lock acquires an object's lock and returns the function that releases it.
func (l *KeyLocks) Lock(kind string, key client.ObjectKey) (unlock func()) {
	k := kinds.ObjectKey{Kind: kind, Key: key}
	l.mu.Lock()
	if l.held == nil {
		l.held = map[kinds.ObjectKey]*keyLock{}
	}
	one := l.held[k]
	if one == nil {
		one = &keyLock{}
		l.held[k] = one
	}
	one.users++
	l.mu.Unlock()

	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, k)
		}
	}
}
