// Package pace limits how often each of many callers does something.
package pace

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
)

// Pace has a rate limit for each caller. Of callers, it remembers a bounded
// number.
type Pace struct {
	limit rate.Limit
	burst int
	lasts time.Duration

	mu      sync.Mutex
	callers *cache.LRUExpireCache
}

// budget is what a caller may do.
type budget struct {
	left *rate.Limiter
	// begun is how much of it has not ended.
	begun int
}

// New returns the pace of callers who are remembered for a time, up to a number
// of them.
func New(limit rate.Limit, burst, callers int, lasts time.Duration) *Pace {
	return &Pace{limit: limit, burst: burst, lasts: lasts, callers: cache.NewLRUExpireCache(callers)}
}

// Allows reports whether a caller may do it now, and counts it then.
func (p *Pace) Allows(caller string) bool {
	end, ok := p.Begin(caller)
	if ok {
		end(true)
	}
	return ok
}

// Begin reports whether a caller may begin now, of which the end decides whether
// it counts. What has begun may all come to count. The caller calls end once.
func (p *Pace) Begin(caller string) (end func(counts bool), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.of(caller)
	if b.left.Tokens() < float64(b.begun+1) {
		return nil, false
	}
	b.begun++
	return func(counts bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.begun--
		if counts {
			b.left.Allow()
		}
	}, true
}

func (p *Pace) of(caller string) *budget {
	if found, ok := p.callers.Get(caller); ok {
		return found.(*budget)
	}
	b := &budget{left: rate.NewLimiter(p.limit, p.burst)}
	p.callers.Add(caller, b, p.lasts)
	return b
}
