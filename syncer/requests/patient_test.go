package requests

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var errRefused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

// server accepts connections after a number of requests.
type server struct {
	after    int64
	requests atomic.Int64
}

func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	if s.requests.Add(1) <= s.after {
		return nil, errRefused
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestWatchesWaitForTheServer(t *testing.T) {
	const watches = 10
	s := &server{after: watches + 2} // each tries once, and one of them again
	transport := Patient(s)
	var wait sync.WaitGroup
	for range watches {
		wait.Go(func() {
			answer, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=true", nil))
			if err != nil {
				t.Error(err)
				return
			}
			_ = answer.Body.Close()
		})
	}
	wait.Wait()
}

func TestOneWatchTriesForAll(t *testing.T) {
	s := &server{after: math.MaxInt64}
	transport := Patient(s)
	ctx, cancel := context.WithTimeout(t.Context(), retryFirst)
	defer cancel()
	const watches = 10
	var wait sync.WaitGroup
	for range watches {
		wait.Go(func() {
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=true", nil)
			if _, err := transport.RoundTrip(request); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("got %v after the context is done, want the server's error", err)
			}
		})
	}
	wait.Wait()
	if got := s.requests.Load(); got > watches+2 {
		t.Errorf("%d requests from %d watches", got, watches)
	}
}

// TestConnectedWatchDelaysNoOther checks that watches do not wait for the answer
// to the one that was connected first.
func TestConnectedWatchDelaysNoOther(t *testing.T) {
	var connected atomic.Bool
	answer, ended := make(chan struct{}), make(chan error)
	transport := Patient(RoundTripper(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		if trace == nil { // the first attempt
			return nil, errRefused
		}
		trace.GotConn(httptrace.GotConnInfo{})
		if connected.CompareAndSwap(false, true) {
			<-answer
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	for range 2 {
		go func() {
			response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=true", nil))
			if err == nil {
				err = response.Body.Close()
			}
			ended <- err
		}()
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a watch waits for the answer to another one")
	}
	close(answer)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestOthersDoNotWait(t *testing.T) {
	s := &server{after: math.MaxInt64}
	transport := Patient(s)
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/shop/pods/web"} {
		if _, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, path, nil)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want the server's refusal", err)
		}
	}
	// Errors after the server has accepted are handled by the informer.
	broken := RoundTripper(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET })
	request := httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=true", nil)
	if _, err := Patient(broken).RoundTrip(request); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want the connection's reset", err)
	}
}
