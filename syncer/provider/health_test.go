package provider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// server is a tenant's apiserver.
type server struct {
	status  int
	broken  atomic.Bool
	refuses atomic.Bool
	changes atomic.Int32
	trips   atomic.Int32
}

// RoundTrip answers a request.
func (s *server) RoundTrip(*http.Request) (*http.Response, error) {
	switch {
	case s.refuses.Load():
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case s.broken.Load():
		return nil, errors.New("connection reset")
	}
	return &http.Response{StatusCode: s.status}, nil
}

func (s *server) probe(context.Context) error {
	if s.broken.Load() {
		return errors.New("still broken")
	}
	return nil
}

// ask sends requests through the health.
func ask(h *health, s *server, target string, times int) {
	for range times {
		_, _ = h.wrap(s).RoundTrip(httptest.NewRequest(http.MethodGet, target, nil))
	}
}

func newTestHealth(ctx context.Context, s *server) *health {
	return &health{
		ctx: ctx, probe: s.probe, changed: func() { s.changes.Add(1) }, tripped: func() { s.trips.Add(1) },
	}
}

func TestHealthParksAfterFailuresInARow(t *testing.T) {
	for name, tc := range map[string]struct {
		requests func(*health, *server)
		parked   bool
	}{
		"no request":    {func(*health, *server) {}, false},
		"all went well": {func(h *health, s *server) { ask(h, s, "/api/v1/pods", 10) }, false},
		"a few failed": {func(h *health, s *server) {
			s.broken.Store(true)
			ask(h, s, "/api/v1/pods", tripAfter-1)
		}, false},
		"failures with a success between them": {func(h *health, s *server) {
			s.broken.Store(true)
			ask(h, s, "/api/v1/pods", tripAfter-1)
			s.broken.Store(false)
			ask(h, s, "/api/v1/pods", 1)
			s.broken.Store(true)
			ask(h, s, "/api/v1/pods", tripAfter-1)
		}, false},
		"enough failed": {func(h *health, s *server) {
			s.broken.Store(true)
			ask(h, s, "/api/v1/pods", tripAfter)
		}, true},
		"the server has errors of its own": {func(h *health, s *server) {
			s.status = http.StatusServiceUnavailable
			ask(h, s, "/api/v1/pods", tripAfter)
		}, true},
		"the server refuses": {func(h *health, s *server) {
			s.status = http.StatusForbidden
			ask(h, s, "/api/v1/pods", 10)
		}, false},
		"watches end": {func(h *health, s *server) {
			s.broken.Store(true)
			ask(h, s, "/api/v1/pods?watch=true", 10)
		}, false},
		"watches find no server": {func(h *health, s *server) {
			s.refuses.Store(true)
			ask(h, s, "/api/v1/pods?watch=true", tripAfter)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &server{status: http.StatusOK}
			h := newTestHealth(ctx, s)
			tc.requests(h, s)
			if parked := !h.healthy(); parked != tc.parked {
				t.Errorf("parked: %t, want %t", parked, tc.parked)
			}
			if changes := s.changes.Load(); (changes == 1) != tc.parked {
				t.Errorf("told of %d changes", changes)
			}
			if trips := s.trips.Load(); (trips == 1) != tc.parked {
				t.Errorf("told %d times that it was parked", trips)
			}
		})
	}
}

func TestHealthComesBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &server{status: http.StatusOK}
		h := newTestHealth(ctx, s)
		s.broken.Store(true)
		ask(h, s, "/api/v1/pods", 10*tripAfter)
		time.Sleep(time.Minute)
		if h.healthy() || s.changes.Load() != 1 {
			t.Fatalf("while it is broken: healthy %t, told of %d changes", h.healthy(), s.changes.Load())
		}
		s.broken.Store(false)
		time.Sleep(2 * probeAtMost)
		synctest.Wait()
		if !h.healthy() || s.changes.Load() != 2 {
			t.Errorf("after it came back: healthy %t, told of %d changes", h.healthy(), s.changes.Load())
		}
		// It can be parked again.
		s.broken.Store(true)
		ask(h, s, "/api/v1/pods", tripAfter)
		if h.healthy() || s.trips.Load() != 2 {
			t.Errorf("the second time: healthy %t, told %d times that it was parked", h.healthy(), s.trips.Load())
		}
	})
}

func TestHealthStopsAskingWhenTheTenantGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{}
		h := newTestHealth(ctx, s)
		s.broken.Store(true)
		ask(h, s, "/api/v1/pods", tripAfter)
		cancel()
		// The bubble would not end while the probing goroutine runs.
		synctest.Wait()
		if changes := s.changes.Load(); changes != 1 {
			t.Errorf("told of %d changes", changes)
		}
	})
}
