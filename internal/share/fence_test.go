package share

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

const duration, term = 15 * time.Second, 12 * time.Second // of DefaultTiming

func TestFence(t *testing.T) {
	sent := time.Now()
	for name, tc := range map[string]struct {
		renewed *time.Time
		now     time.Time
		want    error
	}{
		"before the first renewal":  {nil, sent, errNotYet},
		"renewed just now":          {&sent, sent, nil},
		"renewed not long ago":      {&sent, sent.Add(term - time.Millisecond), nil},
		"renewed too long ago":      {&sent, sent.Add(term), errLapsed},
		"only the wall clock knows": {&sent, sent.Round(0).Add(term), errLapsed},
		"a clock that was set back": {&sent, sent.Round(0).Add(-time.Hour), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFence(term)
			f.renewed.Store(tc.renewed)
			if err := f.check(tc.now); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if lapsed := errors.Is(tc.want, errLapsed); (f.closed.Err() != nil) != lapsed {
				t.Errorf("closed for good: %t, want %t", !lapsed, lapsed)
			}
		})
	}
}

func TestAFenceThatHasClosedStaysSo(t *testing.T) {
	f := newFence(term)
	if err := f.renew(time.Now().Add(-term)); err != nil {
		t.Fatal(err) // the first renewal, whose answer was slow
	}
	if err := f.renew(time.Now()); !errors.Is(err, errLapsed) {
		t.Errorf("got %v: a renewal that came too late opens it again", err)
	}
	if err := f.check(time.Now()); !errors.Is(err, errLapsed) {
		t.Errorf("got %v after that", err)
	}
}

func TestAFenceClosesByItselfUnlessItIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFence(term)
		if err := f.renew(time.Now()); err != nil {
			t.Fatal(err)
		}
		go f.watch(t.Context())
		time.Sleep(term - time.Second)
		if err := f.renew(time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(term - time.Second)
		synctest.Wait()
		if f.closed.Err() != nil {
			t.Fatal("it has closed though it was renewed")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if f.closed.Err() == nil {
			t.Error("it is still open")
		}
	})
}

// guarded returns a server that answers with the method of a request, and a
// client with a fence.
func guarded(t *testing.T, f *fence) (send func(method string) (*http.Response, error)) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
		w.(http.Flusher).Flush()
		if r.Method == http.MethodGet {
			<-r.Context().Done() // a watch
		}
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	f.guard(config)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return func(method string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		return transport.RoundTrip(request)
	}
}

func TestWhatWritesIsRefused(t *testing.T) {
	f := newFence(term)
	send := guarded(t, f)
	if _, err := send(http.MethodPost); !errors.Is(err, errNotYet) {
		t.Errorf("before the first lease: got %v", err)
	}
	if err := f.renew(time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		answer, err := send(method)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		answer.Body.Close()
	}
	f.close()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, err := send(method); !errors.Is(err, errLapsed) {
			t.Errorf("%s: got %v after the lease is gone", method, err)
		}
	}
}

// TestConnectionsEndWithTheFence checks connections, including those with an
// open stream.
func TestConnectionsEndWithTheFence(t *testing.T) {
	f := newFence(term)
	answer, err := guarded(t, f)(http.MethodGet)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	f.close()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the stream does not end")
	}
}

// TestNothingIsSentAfterTheFence checks a connection that was open before, with
// a request that has passed the first check.
func TestNothingIsSentAfterTheFence(t *testing.T) {
	f := newFence(term)
	renewed := time.Now().Add(-term)
	f.renewed.Store(&renewed) // expired, but not noticed yet
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := &conn{Conn: ours, fence: f}
	if n, err := c.Write([]byte("a write")); n > 0 || !errors.Is(err, errLapsed) {
		t.Errorf("%d bytes were sent: %v", n, err)
	}
}
