package share

import (
	"context"
	"errors"
	"io"
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
	"this replica's lease was not renewed in time, or deleted, so that other replicas may serve its tenants")

// fence prevents a replica from writing when others may consider its lease
// expired. It is open for one period after the other.
type fence struct {
	term time.Duration
	now  atomic.Pointer[period]
}

// newFence returns a fence that opens with the first renewal. A renewal keeps it
// open for a term.
func newFence(term time.Duration) *fence {
	f := &fence{term: term}
	f.now.Store(newPeriod(term))
	return f
}

// current returns the period that has begun last.
func (f *fence) current() *period { return f.now.Load() }

// begin returns a period that is not closed, which is a new one after the last one
// has closed. A request or a connection of an earlier period stays closed.
func (f *fence) begin() *period {
	if f.current().isClosed() {
		f.now.Store(newPeriod(f.term))
	}
	return f.current()
}

// check returns an error if the replica must not write now.
func (f *fence) check(now time.Time) error { return f.current().check(now) }

// period is a time in which a replica may write: from its first renewal until the
// last one is older than a term. Once it was found closed, it stays closed.
type period struct {
	// renewed is when the last successful renewal was sent; nil before the
	// first.
	renewed atomic.Pointer[time.Time]
	// closed is done when the period has ended.
	closed context.Context
	close  context.CancelFunc
	term   time.Duration
}

func newPeriod(term time.Duration) *period {
	p := &period{term: term}
	p.closed, p.close = context.WithCancel(context.Background())
	return p
}

func (p *period) isClosed() bool { return p.closed.Err() != nil }

// renew records a successful renewal and when it was sent. It fails if the
// period has ended meanwhile.
func (p *period) renew(sent time.Time) error {
	if err := p.check(time.Now()); errors.Is(err, errLapsed) {
		return err
	}
	p.renewed.Store(&sent)
	return nil
}

// check returns an error if the replica must not write now.
func (p *period) check(now time.Time) error {
	renewed := p.renewed.Load()
	switch {
	case p.isClosed():
		return errLapsed
	case renewed == nil:
		return errNotYet
	case p.left(*renewed, now) <= 0:
		p.close()
		return errLapsed
	}
	return nil
}

// left returns how long a renewal keeps the period open. It uses both clocks:
// the monotonic clock stops while a machine is suspended, the wall clock can be
// set back.
func (p *period) left(renewed, now time.Time) time.Duration {
	monotonic, wall := now.Sub(renewed), now.Round(0).Sub(renewed.Round(0))
	return p.term - max(monotonic, wall)
}

// watch closes the period when it expires, until ctx is done.
func (p *period) watch(ctx context.Context) {
	for {
		next := p.term
		if renewed := p.renewed.Load(); renewed != nil {
			next = p.left(*renewed, time.Now())
		}
		select {
		case <-ctx.Done():
			return
		case <-p.closed.Done():
			return
		case <-time.After(next):
		}
		if errors.Is(p.check(time.Now()), errLapsed) {
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
	during := t.fence.current()
	if err := during.check(time.Now()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return during.send(r, t.next)
}

// send sends a request that ends with the period: one that waits for a connection
// must not be sent in the next period.
func (p *period) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer context.AfterFunc(p.closed, func() { cancel(errLapsed) })()
	response, err := next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	response.Body = &requestBody{ReadCloser: response.Body, end: func() { cancel(nil) }}
	return response, nil
}

// requestBody ends the context of a request when the response is closed.
type requestBody struct {
	io.ReadCloser

	end func()
}

// Close implements io.Closer.
func (b *requestBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// reads reports whether a request is read-only.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
