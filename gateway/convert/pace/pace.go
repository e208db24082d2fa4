// Package pace bounds what converted tenants have the gateway or the super cluster do
// over time.
package pace

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Tenants are token buckets by tenant, of one size and rate. What a tenant takes is
// known only after it was done, so that a bucket may be overdrawn: the tenant waits
// for longer then.
type Tenants struct {
	burst int
	limit rate.Limit

	mu sync.Mutex
	// buckets are those that are not full, by cluster key.
	buckets map[string]*rate.Limiter
}

// NewTenants returns full buckets of a burst, which get a number of tokens in a second.
func NewTenants(burst int, limit rate.Limit) *Tenants {
	return &Tenants{burst: burst, limit: limit, buckets: map[string]*rate.Limiter{}}
}

// Wait returns for how long a tenant has to wait until it has a token; 0 if it has one
// now.
func (t *Tenants) Wait(clusterKey string) time.Duration {
	left := t.Left(clusterKey)
	if left >= 1 {
		return 0
	}
	return time.Duration((1 - left) / float64(t.limit) * float64(time.Second))
}

// Left returns how many tokens a tenant has: less than 0 if its bucket is overdrawn.
func (t *Tenants) Left(clusterKey string) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if bucket := t.buckets[clusterKey]; bucket != nil {
		return bucket.Tokens()
	}
	return float64(t.burst)
}

// Take takes tokens of a tenant, at most a burst. Tenants whose buckets are full again
// are forgotten.
func (t *Tenants) Take(clusterKey string, tokens int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	bucket := t.buckets[clusterKey]
	if bucket == nil {
		maps.DeleteFunc(t.buckets, func(_ string, other *rate.Limiter) bool { return other.TokensAt(now) >= float64(t.burst) })
		bucket = rate.NewLimiter(t.limit, t.burst)
		t.buckets[clusterKey] = bucket
	}
	bucket.ReserveN(now, min(tokens, t.burst))
}
