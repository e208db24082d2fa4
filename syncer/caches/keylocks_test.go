package caches

import (
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKeyLocksLetOneIn(t *testing.T) {
	var locks KeyLocks
	var workers sync.WaitGroup
	inside := 0 // only guarded by the key locks, for the race detector
	for range 16 {
		workers.Go(func() {
			for range 100 {
				unlock := locks.Lock("Pod", webKey)
				if inside++; inside != 1 {
					t.Errorf("%d are inside at once", inside)
				}
				inside--
				unlock()
			}
		})
	}
	workers.Wait()
	if len(locks.held) != 0 {
		t.Errorf("%d locks are left when all are free", len(locks.held))
	}
}

// TestKeyLocksOfDifferentObjectsDoNotWait would deadlock if they did.
func TestKeyLocksOfDifferentObjectsDoNotWait(t *testing.T) {
	var locks KeyLocks
	defer locks.Lock("Pod", webKey)()
	defer locks.Lock("Service", webKey)()
	defer locks.Lock("Pod", client.ObjectKey{Namespace: "other", Name: "web"})()
	if len(locks.held) != 3 {
		t.Errorf("%d locks are held, want 3", len(locks.held))
	}
}
