package requests

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Connections to a server that refuses them are retried after retryFirst, and
// the delay doubles each time, up to retryMost.
const retryFirst, retryMost = 250 * time.Millisecond, 4 * time.Second

// Patient makes the watches of a transport wait while a server refuses
// connections, instead of failing. An informer doubles its delay after each
// failure, up to a minute: after an outage of half a minute it would stay
// disconnected for as long again. One watch of the transport retries; when it is
// connected, the others follow. They do not wait for its answer, which can take
// long.
func Patient(next http.RoundTripper) http.RoundTripper {
	turn := make(chan struct{}, 1)
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if !IsWatch(r) || !NotAccepted(err) {
			return answer, err
		}
		select {
		case turn <- struct{}{}:
			release := sync.OnceFunc(func() { <-turn })
			defer release()
			connected := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { release() }}
			return insist(next, r.WithContext(httptrace.WithClientTrace(r.Context(), connected)), err)
		case <-r.Context().Done():
			return nil, err
		}
	})
}

// insist retries a failed request until the server accepts the connection or
// the request's context is done.
func insist(next http.RoundTripper, r *http.Request, err error) (*http.Response, error) {
	var answer *http.Response
	logger := log.Log.WithName("syncer").WithValues("server", r.URL.Host)
	backoff := wait.Backoff{Duration: retryFirst, Factor: 2, Jitter: 0.2, Steps: 16, Cap: retryMost}
	failed := false
	_ = backoff.DelayFunc().Until(r.Context(), true, false, func(context.Context) (bool, error) {
		answer, err = next.RoundTrip(r) //nolint:bodyclose // the caller's to close
		if NotAccepted(err) && !failed {
			failed = true
			logger.Info("The apiserver accepts no connections; retrying", "cause", err.Error())
		}
		return !NotAccepted(err), nil
	})
	if failed && err == nil {
		logger.Info("The apiserver accepts connections again")
	}
	return answer, err
}

// NotAccepted reports whether a request failed because the connection was not
// accepted.
func NotAccepted(err error) bool {
	failure, ok := errors.AsType[*net.OpError](err)
	return ok && failure.Op == "dial"
}
