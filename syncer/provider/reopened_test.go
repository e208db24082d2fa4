package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// open sends a request through the transport.
func open(t *testing.T, w *reopened, target string) {
	t.Helper()
	next := requests.RoundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: http.StatusOK}, nil })
	answer, err := w.wrap(next).RoundTrip(httptest.NewRequest(http.MethodGet, target, nil))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the request got %v, %v", answer, err)
	}
}

// verifications counts how often the identity is verified.
func verifications(ctx context.Context, answer error) (*reopened, *atomic.Int32) {
	var asked atomic.Int32
	return newReopened(ctx, func(context.Context) error {
		asked.Add(1)
		return answer
	}), &asked
}

func TestWatchesThatOpenLeadToOneQuestion(t *testing.T) {
	const watch = "/api/v1/pods?watch=true"
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, asked := verifications(ctx, errors.New("another cluster")) // is handled by the cluster
		expect := func(when string, want int32) {
			t.Helper()
			synctest.Wait()
			if got := asked.Load(); got != want {
				t.Errorf("%s, it got %d requests, want %d", when, got, want)
			}
		}
		// The first watches open right after the identity was read.
		for range 10 {
			open(t, w, watch)
		}
		expect("at once", 0)
		time.Sleep(verifyEvery)
		expect("after a while", 1)

		time.Sleep(time.Hour)
		expect("when no watch opens", 1)
		open(t, w, "/api/v1/pods")
		expect("when something is listed", 1)

		for range 10 {
			open(t, w, watch)
		}
		expect("when watches open again", 2)
		open(t, w, watch)
		expect("when one more opens at once", 2)
		time.Sleep(verifyEvery)
		expect("later", 3)
	})
}

func TestNobodyIsAskedWhenTheTenantIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w, asked := verifications(ctx, nil)
		open(t, w, "/api/v1/pods?watch=true")
		cancel()
		// The bubble would not end while the verifying goroutine runs.
		synctest.Wait()
		if n := asked.Load(); n != 0 {
			t.Errorf("it got %d requests", n)
		}
	})
}

// silent never verifies.
func silent() *reopened {
	w := &reopened{}
	w.asking.Store(true)
	return w
}

func TestTheNewestRevisionIsThatOfNamespaces(t *testing.T) {
	w := silent()
	if got := w.newest(); got != "" {
		t.Errorf("before a watch opened it is %q", got)
	}
	for _, step := range []struct{ target, want string }{
		{"/api/v1/namespaces?watch=true", ""},
		{"/api/v1/namespaces?watch=true&resourceVersion=7", "7"},
		{"/api/v1/namespaces?watch=true&resourceVersion=9", "9"},
		{"/api/v1/events?watch=true&resourceVersion=12", "9"}, // may be in a store of their own
		{"/api/v1/namespaces/kube-system/configmaps?watch=true&resourceVersion=12", "9"},
		{"/api/v1/namespaces?resourceVersion=12", "9"}, // not a watch
		{"/behind/a/proxy/api/v1/namespaces?watch=true&resourceVersion=13", "13"},
	} {
		open(t, w, step.target)
		if got := w.newest(); got != step.want {
			t.Errorf("after %s it is %q, want %q", step.target, got, step.want)
		}
	}
}
