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
	// tripAfter is the number of consecutive failed requests that parks a
	// tenant.
	tripAfter = 3
	// probeEvery is the initial interval of probing a parked tenant, and
	// probeAtMost the maximum.
	probeEvery, probeAtMost = 500 * time.Millisecond, 10 * time.Second
)

// health is a tenant's circuit breaker. It observes every request to the
// tenant's apiserver. When several in a row fail, the tenant is parked, so that
// it cannot occupy workers that others need, and probed until it answers again.
type health struct {
	ctx context.Context // ends with the tenant
	// changed is called after every change, without the lock; tripped when the
	// tenant is parked.
	changed, tripped func()
	// probe checks that the tenant's apiserver answers.
	probe func(context.Context) error

	mu     sync.Mutex
	failed int
	parked bool
}

// healthy reports whether the tenant's apiserver answers.
func (h *health) healthy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.parked
}

// wrap observes the requests of a transport. Of a watch, only failed
// connections count: open watches end when a server restarts, and open again.
func (h *health) wrap(next http.RoundTripper) http.RoundTripper {
	return requests.RoundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if !requests.IsWatch(r) || requests.NotAccepted(err) {
			h.observe(err == nil && answer.StatusCode < http.StatusInternalServerError)
		}
		return answer, err
	})
}

// observe counts a request that succeeded or failed.
func (h *health) observe(well bool) {
	if h.count(well) {
		h.tripped()
		go h.recover()
		h.changed()
	}
}

// count reports whether this failure parks the tenant.
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

// recover probes the tenant's apiserver until it answers.
func (h *health) recover() {
	backoff := wait.Backoff{Duration: probeEvery, Factor: 2, Jitter: 0.1, Steps: 5, Cap: probeAtMost}
	err := backoff.DelayFunc().Until(h.ctx, false, false, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return h.probe(ctx) == nil, nil
	})
	if err != nil {
		return // the tenant is disengaged
	}
	h.mu.Lock()
	h.parked, h.failed = false, 0
	h.mu.Unlock()
	h.changed()
}
