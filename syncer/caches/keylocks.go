package caches

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// KeyLocks is a lock for every object, made when it is wanted and gone when it is free. The zero value is ready.
type KeyLocks struct {
	mu   sync.Mutex
	held map[kinds.ObjectKey]*keyLock
}

// keyLock is the lock of one object, and how many have it or wait for it.
type keyLock struct {
	sync.Mutex
	users int
}

// Lock waits for an object's lock and returns what gives it back.
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
