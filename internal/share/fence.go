package share

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// errNotYet is returned for writes before the replica has a lease.
var errNotYet = errors.New("this replica has no lease yet, so it may not write")

// errLapsed is returned for writes after the replica has lost its lease: other
// replicas may serve its tenants.
var errLapsed = errors.New(
	"this replica's lease was not renewed in time, or deleted, so that others may serve its tenants; exiting to be restarted")

// fence prevents a replica from writing when others may consider its lease
// expired. It is open while the last renewal is not older than the term. Once
// it was found closed, it stays closed.
type fence struct {
	// renewed is when the last successful renewal was sent; nil before the
	// first.
	renewed atomic.Pointer[time.Time]
	// closed is done when the fence has closed permanently.
	closed context.Context
	close  context.CancelFunc
	// term is how long a renewal keeps it open.
	term time.Duration
}

// newFence returns a fence that opens with the first renewal.
func newFence(term time.Duration) *fence {
	f := &fence{term: term}
	f.closed, f.close = context.WithCancel(context.Background())
	return f
}

// renew records a successful renewal and when it was sent. It fails if the
// fence has closed meanwhile.
func (f *fence) renew(sent time.Time) error {
	if err := f.check(time.Now()); errors.Is(err, errLapsed) {
		return err
	}
	f.renewed.Store(&sent)
	return nil
}

// check returns an error if the replica must not write now.
func (f *fence) check(now time.Time) error {
	renewed := f.renewed.Load()
	switch {
	case f.closed.Err() != nil:
		return errLapsed
	case renewed == nil:
		return errNotYet
	case f.left(*renewed, now) <= 0:
		f.close()
		return errLapsed
	}
	return nil
}

// left returns how long a renewal keeps the fence open. It uses both clocks:
// the monotonic clock stops while a machine is suspended, the wall clock can be
// set back.
func (f *fence) left(renewed, now time.Time) time.Duration {
	monotonic, wall := now.Sub(renewed), now.Round(0).Sub(renewed.Round(0))
	return f.term - max(monotonic, wall)
}

// watch closes the fence when it expires, until ctx is done.
func (f *fence) watch(ctx context.Context) {
	for {
		next := f.term
		if renewed := f.renewed.Load(); renewed != nil {
			next = f.left(*renewed, time.Now())
		}
		select {
		case <-ctx.Done():
			return
		case <-f.closed.Done():
			return
		case <-time.After(next):
		}
		if errors.Is(f.check(time.Now()), errLapsed) {
			return
		}
	}
}

// guard adds the fence to the connections of a configuration. A write is
// rejected when the fence is closed, and after it has closed no byte is sent on
// a connection: a request may have passed the first check and then wait, for
// its connection or for a processor, until the lease has expired.
func (f *fence) guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{fence: f, next: next} })
	config.Dial = f.dial(config.Dial)
}

// fenced is a transport that rejects writes while the fence is closed.
type fenced struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip sends a request, unless it writes and the fence is closed.
func (t fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if reads(r) {
		return t.next.RoundTrip(r)
	}
	if err := t.fence.check(time.Now()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// reads reports whether a request is read-only.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
