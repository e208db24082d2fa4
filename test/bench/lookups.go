package bench

import (
	"context"
	"sync"
	"time"
)

const (
	// forgets is the time for which an apiserver caches the limits of a
	// namespace (LimitRanger, ResourceQuota). The next lookup reads etcd, which
	// may take 100 ms.
	forgets = 30 * time.Second
	// leeway is the longest time from the response to a creation in a tenant to
	// the creation of the copy.
	leeway = time.Second
)

// lookups records when apiservers last looked up the limits of the namespaces
// of a load.
type lookups struct {
	mu sync.Mutex
	at map[target]time.Time
}

// created records the creation of a pod in a namespace, which causes a lookup
// if the cache has expired.
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

// ready returns the time from which pods can be created in namespaces for so
// long without a lookup in between: now if the cached limits do not expire
// meanwhile, or have expired already; otherwise when they expire.
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
