package share

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// errNotYet is why nothing is written by a replica that has no lease yet.
var errNotYet = errors.New("this replica has no lease yet, so it may not write")

// errLapsed is why nothing is written by a replica that has lost its lease: the others may have its tenants by now.
var errLapsed = errors.New(
	"this replica's lease was not renewed in time, or deleted, so that others may serve its tenants; it ends, to be started anew")

// fence keeps a replica from writing when others may take its lease for dead. It is open while the last renewal is not older than
// the term, and once it has been found closed it stays so.
type fence struct {
	// renewed is when the last renewal that succeeded was sent; nil before the first.
	renewed atomic.Pointer[time.Time]
	// closed ends when the fence closes for good.
	closed context.Context
	close  context.CancelFunc
}

// newFence makes a fence that opens with the first renewal.
func newFence() *fence {
	f := &fence{}
	f.closed, f.close = context.WithCancel(context.Background())
	return f
}

// renew is told of a renewal that succeeded, and when it was sent. It comes too late if the fence has closed meanwhile.
func (f *fence) renew(sent time.Time) error {
	if err := f.check(time.Now()); errors.Is(err, errLapsed) {
		return err
	}
	f.renewed.Store(&sent)
	return nil
}

// check says whether the replica may write now.
func (f *fence) check(now time.Time) error {
	renewed := f.renewed.Load()
	switch {
	case f.closed.Err() != nil:
		return errLapsed
	case renewed == nil:
		return errNotYet
	case left(*renewed, now) <= 0:
		f.close()
		return errLapsed
	}
	return nil
}

// left is for how long a renewal keeps the fence open. Both clocks have a say: the monotonic one stands still while a machine is
// suspended, the other one can be set back.
func left(renewed, now time.Time) time.Duration {
	monotonic, wall := now.Sub(renewed), now.Round(0).Sub(renewed.Round(0))
	return term - max(monotonic, wall)
}

// watch closes the fence when its time comes, until ctx ends.
func (f *fence) watch(ctx context.Context) {
	for {
		next := term
		if renewed := f.renewed.Load(); renewed != nil {
			next = left(*renewed, time.Now())
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

// guard puts the fence into the connections that are made with a configuration. A request that writes is refused when the fence is
// closed, and after it has closed no byte leaves on a connection: a request may have passed the first check and wait, for its
// connection or for a processor, until the lease is gone.
func (f *fence) guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return requests.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if reads(r) {
				return next.RoundTrip(r)
			}
			if err := f.check(time.Now()); err != nil {
				if r.Body != nil {
					_ = r.Body.Close()
				}
				return nil, err
			}
			return next.RoundTrip(r)
		})
	})
	config.Dial = f.dial(config.Dial)
}

// reads says whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
