package bench

import (
	"context"
	"sync"
	"time"
)

const (
	// forgets is how long an apiserver remembers what limits a namespace has (LimitRanger, ResourceQuota). Then it asks etcd, which may
	// take 100 ms.
	forgets = 30 * time.Second
	// leeway is how much later than the answer to a creation in a tenant its copy may be made.
	leeway = time.Second
)

// lookups are when apiservers last looked up what limits the namespaces have that pods are created in.
type lookups struct {
	mu sync.Mutex
	at map[target]time.Time
}

// created notes that a pod was created in a namespace: if the last look-up was forgotten, that made another.
func (l *lookups) created(in target, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[target]time.Time{}
	}
	if now.Sub(l.at[in]) >= forgets {
		l.at[in] = now
	}
}

// ready is when to create pods in namespaces so that none of those that follow for so long wait for a look-up: at once if the last are
// remembered all the time, or forgotten already; else when they will be.
func (l *lookups) ready(in []target, now time.Time, lasts time.Duration) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	ready := now
	for _, t := range in {
		forgotten := l.at[t].Add(forgets)
		if forgotten.Add(leeway).After(now) && forgotten.Before(now.Add(lasts+leeway)) && forgotten.Add(leeway).After(ready) {
			ready = forgotten.Add(leeway)
		}
	}
	return ready
}

// pause waits until a time.
func pause(ctx context.Context, until time.Time) error {
	select {
	case <-time.After(time.Until(until)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
