package share

import (
	"context"
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

func TestPeriod(t *testing.T) {
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
			p := newPeriod(term)
			p.renewed.Store(tc.renewed)
			if err := p.check(tc.now); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if lapsed := errors.Is(tc.want, errLapsed); p.isClosed() != lapsed {
				t.Errorf("closed for good: %t, want %t", !lapsed, lapsed)
			}
		})
	}
}

// TestFence applies events to a fence, and checks after each whether writes pass.
func TestFence(t *testing.T) {
	type event struct {
		name string
		want error
	}
	events := map[string]func(f *fence){
		"renew":      func(f *fence) { _ = f.current().renew(time.Now()) },
		"renew late": func(f *fence) { _ = f.current().renew(time.Now().Add(-term)) },
		"expire": func(f *fence) {
			before := time.Now().Add(-term)
			f.current().renewed.Store(&before)
		},
		"lose":  func(f *fence) { f.current().close() },
		"begin": func(f *fence) { f.begin() },
	}
	for name, happens := range map[string][]event{
		"opens with the first renewal":           {{"begin", errNotYet}, {"renew", nil}},
		"stays closed after it expired":          {{"renew", nil}, {"expire", errLapsed}, {"renew", errLapsed}, {"renew", errLapsed}},
		"stays closed after the lease was lost":  {{"renew", nil}, {"lose", errLapsed}, {"renew", errLapsed}},
		"opens in the next period":               {{"renew", nil}, {"expire", errLapsed}, {"begin", errNotYet}, {"renew", nil}},
		"expires in the next period":             {{"lose", errLapsed}, {"begin", errNotYet}, {"renew", nil}, {"expire", errLapsed}},
		"does not open with a renewal too late":  {{"begin", errNotYet}, {"renew late", errLapsed}, {"renew", errLapsed}},
		"does not begin again while it is open":  {{"renew", nil}, {"begin", nil}, {"lose", errLapsed}},
		"is lost before it was ever renewed":     {{"lose", errLapsed}, {"renew", errLapsed}},
		"is lost in the next period":             {{"lose", errLapsed}, {"begin", errNotYet}, {"lose", errLapsed}, {"begin", errNotYet}},
		"a period that has not begun is the one": {{"begin", errNotYet}, {"begin", errNotYet}, {"renew", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFence(term)
			for i, e := range happens {
				events[e.name](f)
				if err := f.check(time.Now()); !errors.Is(err, e.want) {
					t.Errorf("after event %d, %s: got %v, want %v", i, e.name, err, e.want)
				}
			}
		})
	}
}

func TestAPeriodEndsByItselfUnlessItIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeriod(term)
		if err := p.renew(time.Now()); err != nil {
			t.Fatal(err)
		}
		go p.watch(t.Context())
		time.Sleep(term - time.Second)
		if err := p.renew(time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(term - time.Second)
		synctest.Wait()
		if p.isClosed() {
			t.Fatal("it has closed though it was renewed")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !p.isClosed() {
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
	if err := f.current().renew(time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		answer, err := send(method)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		answer.Body.Close()
	}
	f.current().close()
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
	f.current().close()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Error("the stream does not end")
	}
}

// TestNothingIsSentAfterTheFence checks a connection that was open before, with
// a request that has passed the first check.
func TestNothingIsSentAfterTheFence(t *testing.T) {
	f := newFence(term)
	renewed := time.Now().Add(-term)
	f.current().renewed.Store(&renewed) // expired, but not noticed yet
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := &conn{Conn: ours, during: f.current()}
	if n, err := c.Write([]byte("a write")); n > 0 || !errors.Is(err, errLapsed) {
		t.Errorf("%d bytes were sent: %v", n, err)
	}
}

// TestNothingIsSentInTheNextPeriod checks a connection and a request of the period
// before.
func TestNothingIsSentInTheNextPeriod(t *testing.T) {
	f := newFence(term)
	before := f.current()
	if err := before.renew(time.Now()); err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := &conn{Conn: ours, during: before}
	waiting, failed := make(chan struct{}), make(chan error)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://super", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := fenced{fence: f, next: roundTrip(func(r *http.Request) (*http.Response, error) {
			close(waiting) // for a connection
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})}.RoundTrip(request)
		failed <- err
	}()
	<-waiting
	before.close()
	if err := f.begin().renew(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Write([]byte("a write")); n > 0 || !errors.Is(err, errLapsed) {
		t.Errorf("%d bytes were sent on a connection: %v", n, err)
	}
	if err := <-failed; !errors.Is(err, errLapsed) {
		t.Errorf("got %v of a request", err)
	}
}

// roundTrip is a function that sends requests.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
