package provider

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

const (
	// tripAfter is how many requests in a row have to fail before a tenant is parked.
	tripAfter = 3
	// probeEvery is how long a parked tenant is left alone before it is asked again, at first and at most.
	probeEvery, probeAtMost = 500 * time.Millisecond, 10 * time.Second
)

// health is a tenant's circuit breaker. It sees every request to the tenant's apiserver; when several in a row fail, the tenant
// is parked, so that it cannot hold workers that others need, and asked until it answers again.
type health struct {
	ctx context.Context // ends with the tenant
	// changed is called after every change, outside the lock; tripped when that parks the tenant.
	changed, tripped func()
	// probe asks the tenant's apiserver whether it is well.
	probe func(context.Context) error

	mu     sync.Mutex
	failed int
	parked bool
}

// healthy says whether the tenant's apiserver answers.
func (h *health) healthy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.parked
}

// wrap has the health follow the requests of a transport. Of a watch, only that it cannot connect tells something: those that are
// open end when a server restarts, and open again.
func (h *health) wrap(next http.RoundTripper) http.RoundTripper {
	return requests.RoundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if !requests.IsWatch(r) || requests.NotAccepted(err) {
			h.observe(err == nil && answer.StatusCode < http.StatusInternalServerError)
		}
		return answer, err
	})
}

// observe counts a request that was answered well, or not.
func (h *health) observe(well bool) {
	if h.count(well) {
		h.tripped()
		go h.recover()
		h.changed()
	}
}

// count says whether this failure parks the tenant.
func (h *health) count(well bool) (trips bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if well || h.ctx.Err() != nil {
		h.failed = 0
		return false
	}
	h.failed++
	if h.parked || h.failed < tripAfter {
		return false
	}
	h.parked = true
	return true
}

// recover asks the tenant's apiserver until it is well.
func (h *health) recover() {
	backoff := wait.Backoff{Duration: probeEvery, Factor: 2, Jitter: 0.1, Steps: 5, Cap: probeAtMost}
	err := backoff.DelayFunc().Until(h.ctx, false, false, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return h.probe(ctx) == nil, nil
	})
	if err != nil {
		return // the tenant is gone
	}
	h.mu.Lock()
	h.parked, h.failed = false, 0
	h.mu.Unlock()
	h.changed()
}
