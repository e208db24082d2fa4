// Package pace limits how often each of many callers does something.
package pace

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// Pace has a rate limit for each caller. Of callers, it remembers a bounded
// number.
type Pace struct {
	perSecond float32
	burst     int
	lasts     time.Duration

	mu      sync.Mutex // of two first requests of a caller, one makes the limit
	callers *cache.LRUExpireCache
}

// New returns the pace of callers who are remembered for a time, up to a number
// of them.
func New(perSecond float32, burst, callers int, lasts time.Duration) *Pace {
	return &Pace{perSecond: perSecond, burst: burst, lasts: lasts, callers: cache.NewLRUExpireCache(callers)}
}

// Allows reports whether a caller may do it now, and counts it then.
func (p *Pace) Allows(caller string) bool { return p.of(caller).TryAccept() }

func (p *Pace) of(caller string) flowcontrol.RateLimiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit, ok := p.callers.Get(caller); ok {
		return limit.(flowcontrol.RateLimiter)
	}
	limit := flowcontrol.NewTokenBucketRateLimiter(p.perSecond, p.burst)
	p.callers.Add(caller, limit, p.lasts)
	return limit
}
