package front

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/gateway/identity"
)

// Limits are those of a caller: a user of a tenant, a token, or the address of a
// client without credentials.
type Limits struct {
	// Requests is how many requests may be in flight, and Streams how many
	// watches, upgrades and proxied requests.
	Requests, Streams int
	// Passed is how many connections may be passed to control planes without being
	// decrypted, and PassedPerTenant how many of them to one. They are not limits
	// of a caller, whom the gateway does not know.
	Passed, PassedPerTenant int
	// Body is the size of a request in bytes, except for one to a server behind
	// the apiserver.
	Body int64
}

// DefaultLimits are more than an honest client uses: an apiserver takes bodies
// of 3 MiB.
func DefaultLimits() Limits {
	return Limits{Requests: 200, Streams: 1000, Passed: 4000, PassedPerTenant: 1000, Body: 8 << 20}
}

// Validate returns an error for limits that let nothing through.
func (l Limits) Validate() error {
	if l.Requests < 1 || l.Streams < 1 || l.Body < 1 {
		return errors.New("--requests-per-caller, --streams-per-caller and --max-body must be at least 1")
	}
	if l.Passed < 0 || l.PassedPerTenant < 0 {
		return errors.New("--passed-connections and --passed-connections-per-tenant must be at least 0")
	}
	return nil
}

const (
	// bodyTimeout is how long a client may take to send a request.
	bodyTimeout = time.Minute
	// responseTimeout is how long it may take to receive the response.
	responseTimeout = 10 * time.Minute
	// busyRetrySeconds is when to repeat a request beyond a limit.
	busyRetrySeconds = 1
)

// bound limits the body of a request, and the time for it and for the response.
func (l Limits) bound(w http.ResponseWriter, r *http.Request, of class) error {
	if of.isStream() {
		return nil
	}
	if r.ContentLength > l.Body {
		return apierrors.NewRequestEntityTooLargeError(limitMessage(l.Body))
	}
	r.Body = http.MaxBytesReader(w, r.Body, l.Body)
	control, now := http.NewResponseController(w), time.Now()
	if r.ContentLength != 0 {
		if err := control.SetReadDeadline(now.Add(bodyTimeout)); err != nil {
			return fmt.Errorf("limit the time of the request: %w", err)
		}
		r.Body = &timedBody{ReadCloser: r.Body, control: control}
	}
	if err := control.SetWriteDeadline(now.Add(responseTimeout)); err != nil {
		return fmt.Errorf("limit the time of the response: %w", err)
	}
	return nil
}

// timedBody ends the limit of time with the body: the response has another.
type timedBody struct {
	io.ReadCloser

	control *http.ResponseController
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{}) // fails on a connection that is closed
	}
	return n, err
}

func limitMessage(limit int64) string { return fmt.Sprintf("limit is %d bytes", limit) }

// callerOf returns what distinguishes a caller. A token is known by its hash.
func callerOf(r *http.Request, tenant string, caller identity.Caller) string {
	if caller.User != nil {
		return tenant + "/user/" + caller.User.GetName()
	}
	if token := cmp.Or(caller.Token, r.Header.Get("Authorization")); token != "" {
		sum := sha256.Sum256([]byte(token))
		return tenant + "/token/" + string(sum[:])
	}
	return addressOf(r, tenant)
}

// addressOf returns what distinguishes a client without credentials.
func addressOf(r *http.Request, tenant string) string {
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	return tenant + "/address/" + address
}

// inFlight counts the requests of callers. It holds none of those that have no
// request in flight.
type inFlight struct {
	mu      sync.Mutex
	callers map[string]*counts
}

type counts struct{ requests, streams int }

// take counts a request of a caller, unless that has too many.
func (f *inFlight) take(caller string, of class, limits Limits) (done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have := f.callers[caller]
	if have == nil {
		have = &counts{}
	}
	count, limit := &have.requests, limits.Requests
	if of.isStream() {
		count, limit = &have.streams, limits.Streams
	}
	if *count >= limit {
		busy := fmt.Sprintf("the gateway serves %d of these requests at a time to a caller", limit)
		return nil, apierrors.NewTooManyRequests(busy, busyRetrySeconds)
	}
	*count++
	if f.callers == nil {
		f.callers = map[string]*counts{}
	}
	f.callers[caller] = have
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if *count--; *have == (counts{}) {
			delete(f.callers, caller)
		}
	}, nil
}
