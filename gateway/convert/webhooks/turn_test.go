package webhooks

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// caller is a transport that takes a second.
type caller struct{}

func (caller) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	return &http.Response{StatusCode: http.StatusOK}, nil
}

// evaluation computes for a time, calls some webhooks at once, and computes again.
func evaluation(ctx context.Context, t *testing.T, turns Turns, compute time.Duration, webhooks int) error {
	t.Helper()
	ctx, end, err := turns.Take(ctx)
	if err != nil {
		return err
	}
	defer end()
	time.Sleep(compute)
	called := make(chan struct{})
	for range webhooks {
		go func() {
			defer func() { called <- struct{}{} }()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://webhook", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if response, err := (yielding{caller{}}).RoundTrip(request); err != nil || response.StatusCode != http.StatusOK {
				t.Error(err)
			}
		}()
	}
	for range webhooks {
		<-called
	}
	time.Sleep(compute)
	return nil
}

func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		requests, webhooks int
		compute, want      time.Duration
	}{
		"one computes at a time":          {requests: 4, compute: time.Second, want: 8 * time.Second},
		"others compute during a call":    {requests: 4, webhooks: 1, compute: time.Second, want: 8 * time.Second},
		"calls take no turn":              {requests: 100, webhooks: 1, want: time.Second},
		"a request has calls at once":     {requests: 1, webhooks: 9, want: time.Second},
		"calls of several that are mixed": {requests: 100, webhooks: 9, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns, began := NewTurns(), time.Now()
				ended := make(chan error)
				for range c.requests {
					go func() { ended <- evaluation(t.Context(), t, turns, c.compute, c.webhooks) }()
				}
				for range c.requests {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("took %v, want %v", took, c.want)
				}
				if len(turns.place) != 0 {
					t.Error("a turn has not ended")
				}
			})
		})
	}
}

// TestTurnOfOneThatGivesUp: a request whose time is over gives its turn to others.
func TestTurnOfOneThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		computes := make(chan error)
		go func() { computes <- evaluation(t.Context(), t, turns, 10*time.Second, 0) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := evaluation(short, t, turns, 0, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(<-computes, evaluation(t.Context(), t, turns, 0, 1)); err != nil {
			t.Error(err)
		}

		// The time of an evaluation is over while another request computes.
		short, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		go func() { computes <- evaluation(short, t, turns, time.Second, 1) }()
		synctest.Wait()
		if err := errors.Join(evaluation(t.Context(), t, turns, 10*time.Second, 0), <-computes); err != nil {
			t.Error(err)
		}
		if len(turns.place) != 0 {
			t.Error("a turn has not ended")
		}
	})
}

// TestTurnAfterATimeout: a call whose own time is over does not compute beside others.
func TestTurnAfterATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, began := NewTurns(), time.Now()
		ctx, end, err := turns.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		call, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(call, http.MethodPost, "https://webhook", nil)
		if err != nil {
			t.Fatal(err)
		}
		computes := make(chan error)
		go func() { computes <- evaluation(t.Context(), t, turns, 5*time.Second, 0) }()
		if response, err := (yielding{caller{}}).RoundTrip(request); err != nil || response.StatusCode != http.StatusOK {
			t.Error(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("continued after %v, while another request computes for 10s", took)
		}
		end()
		if err := <-computes; err != nil || len(turns.place) != 0 {
			t.Errorf("%v, %d turns have not ended", err, len(turns.place))
		}
	})
}
