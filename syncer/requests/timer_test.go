package requests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// journal is a timer that records its calls.
type journal []string

func (j *journal) Begin(side string) func(bool) {
	*j = append(*j, side)
	return func(answered bool) { *j = append(*j, fmt.Sprint(side, " answered: ", answered)) }
}

// TestTimer checks that a request lasts until its answer has been read, or
// until it fails; a watch is not timed.
func TestTimer(t *testing.T) {
	c, err := NewCounter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var told journal
	send := func(ctx context.Context, side, path string, failure error) *http.Response {
		t.Helper()
		transport := c.Wrap(side)(RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, failure
		}))
		answer, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		if !errors.Is(err, failure) {
			t.Fatal(err)
		}
		return answer
	}
	want := func(want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		told = nil
	}
	timed := Timed(t.Context(), &told)

	answer := send(timed, Tenant, "/api/v1/pods", nil)
	want("tenant")
	_ = answer.Body.Close()
	_ = answer.Body.Close()
	want("tenant answered: true")

	_ = send(timed, Super, "/api/v1/pods", errors.New("reset"))
	want("super", "super answered: false")

	_ = send(timed, Tenant, "/api/v1/pods?watch=1", nil).Body.Close()
	_ = send(t.Context(), Tenant, "/api/v1/pods", nil).Body.Close()
	want()
}
