package requests

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A server that accepts no connections is tried again after retryFirst, then after twice as long each time, up to retryMost.
const retryFirst, retryMost = 250 * time.Millisecond, 4 * time.Second

// Patient has the watches that go through a transport wait for a server that accepts no connections, where others fail. An
// informer waits twice as long after each failure, up to a minute: an outage of half a minute would leave it blind for as long
// again. One watch of the transport tries; when it gets through, the others follow.
func Patient(next http.RoundTripper) http.RoundTripper {
	turn := make(chan struct{}, 1)
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if !IsWatch(r) || !NotAccepted(err) {
			return answer, err
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
			return insist(next, r, err)
		case <-r.Context().Done():
			return nil, err
		}
	})
}

// insist sends a request that failed until the server accepts the connection or nobody waits any more.
func insist(next http.RoundTripper, r *http.Request, err error) (*http.Response, error) {
	var answer *http.Response
	logger := log.Log.WithName("syncer").WithValues("server", r.URL.Host)
	backoff := wait.Backoff{Duration: retryFirst, Factor: 2, Jitter: 0.2, Steps: 16, Cap: retryMost}
	failed := false
	_ = backoff.DelayFunc().Until(r.Context(), true, false, func(context.Context) (bool, error) {
		answer, err = next.RoundTrip(r) //nolint:bodyclose // the caller's to close
		if NotAccepted(err) && !failed {
			failed = true
			logger.Info("An apiserver accepts no connections; it is tried again", "cause", err.Error())
		}
		return !NotAccepted(err), nil
	})
	if failed && err == nil {
		logger.Info("The apiserver accepts connections again")
	}
	return answer, err
}

// NotAccepted says whether a request did not even reach the server.
func NotAccepted(err error) bool {
	failure, ok := errors.AsType[*net.OpError](err)
	return ok && failure.Op == "dial"
}
