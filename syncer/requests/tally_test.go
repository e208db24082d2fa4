package requests

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestTally checks that a request counts in the tally of its context, including
// derived contexts, and in no other.
func TestTally(t *testing.T) {
	c, err := NewCounter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context, side string) {
		t.Helper()
		transport := c.Wrap(side)(RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))
		answer, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods", nil))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	mine, sent := Tallied(t.Context())
	others, othersSent := Tallied(t.Context())
	derived, cancel := context.WithCancel(mine)
	defer cancel()
	send(mine, Super)
	send(derived, Super)
	send(derived, Tenant)
	send(others, Tenant)
	send(t.Context(), Super)
	if sent.To(Super) != 2 || sent.To(Tenant) != 1 || othersSent.To(Super) != 0 || othersSent.To(Tenant) != 1 {
		t.Errorf("tallied %d and %d, and of another %d and %d; want 2 and 1, and 0 and 1",
			sent.To(Super), sent.To(Tenant), othersSent.To(Super), othersSent.To(Tenant))
	}
}
