package inflight

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

const (
	// retryAfter is the time, in seconds, after which a rejected client may
	// retry.
	retryAfter = 1
	// readPatience is how long a client may take to read a large response, or the
	// beginning of a watch, which is upstream's timeout of a request.
	readPatience = time.Minute
	// initialPatience is how long the beginning of a watch counts if it comes from
	// a watch cache, however slow its client is.
	initialPatience = 30 * time.Second
	// refusalPatience is how long a client may take to read why its request is
	// refused.
	refusalPatience = time.Second
)

// Filter limits the requests of a handler chain, of one tenant or of many. It
// is the outermost part, except for one that sets the tenant.
type Filter struct {
	// Tenant returns the tenant of a request's context.
	Tenant func(context.Context) (*Tenant, error)
	// IsPlatform reports whether the platform sent a request. The limits of the
	// tenant do not apply to it; its memory counts for the process.
	IsPlatform func(*http.Request) bool
	// Resolver and IsLongRunning are the chain's.
	Resolver      apirequest.RequestInfoResolver
	IsLongRunning apirequest.LongRunningRequestCheck
	// IsInternal reports whether one of the tenant's own controllers sent a
	// request. Those are not limited.
	IsInternal func(context.Context) bool
	// CallsWebhook reports whether a request calls a webhook of the tenant, which
	// its configuration leads to the apiserver itself. It is limited, also an internal one.
	CallsWebhook func(context.Context) bool
	// Cached means that lists and watches are served from watch caches. Otherwise
	// the client of etcd is one with [Bound].
	Cached bool
	// Types are those as which the chain's servers decode bodies in protobuf.
	Types *nesting.Types
}

// Wrap returns a handler that limits the requests of another.
func (f Filter) Wrap(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls := f.CallsWebhook(r.Context())
		if f.IsInternal(r.Context()) && !calls {
			handler.ServeHTTP(w, r)
			return
		}
		head := headOf(r)
		if err := head.check(); err != nil {
			respond(err, w, &http.Request{Method: r.Method, Header: r.Header, URL: &url.URL{}}) // its own would be parsed
			return
		}
		info, err := f.Resolver.NewRequestInfo(r)
		if err != nil {
			handler.ServeHTTP(w, r)
			return
		}
		tenant, err := f.Tenant(r.Context())
		if err != nil {
			respond(apierrors.NewInternalError(err), w, r)
			return
		}
		if f.IsPlatform(r) {
			tenant = tenant.platform
		}
		longRunning := f.IsLongRunning(r, info)
		d := demand{kind: kindOf(info, longRunning, calls), head: head.counted()}
		if longRunning {
			d.cost = d.head + watchCost(r, info, tenant.stored())
		} else {
			d.cost = d.head + cost(r, info, tenant.stored(), f.Cached)
		}
		g, err := tenant.acquire(r.Context(), d)
		if err != nil {
			respond(explain(err), w, r)
			return
		}
		defer g.release()
		if longRunning {
			f.serveLongRunning(handler, w, r, info, g)
			return
		}
		f.serve(handler, w, r, info, g)
	})
}

// serve serves a request that is not long-running. A client that does not read
// a large response must not keep its memory.
func (f Filter) serve(handler http.Handler, w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, g *grant) {
	if g.large {
		controller := http.NewResponseController(w)
		if controller.SetWriteDeadline(time.Now().Add(readPatience)) == nil {
			defer func() { _ = controller.SetWriteDeadline(time.Time{}) }() // a connection has other requests
		}
	}
	if g.isLargeRead() {
		w = yield(w)
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &body{ReadCloser: r.Body, mediaType: r.Header.Get("Content-Type"), types: f.Types, info: info, grow: g.grow}
	}
	handler.ServeHTTP(w, r)
}

// serveLongRunning serves a long-running request. Of these, watches need memory:
// until they have sent the objects that exist, and for what their clients do not
// read.
func (f Filter) serveLongRunning(handler http.Handler, w http.ResponseWriter, r *http.Request, info *apirequest.RequestInfo, g *grant) {
	switch {
	case !f.Cached && info.Verb == watchVerb:
		serveWatch(handler, w, r, g)
	case !g.holdsMore():
		handler.ServeHTTP(w, r)
	default: // the cache signals the end
		timer := time.AfterFunc(initialPatience, g.releaseMemory)
		defer timer.Stop()
		handler.ServeHTTP(w, r.WithContext(flowcontrol.WithInitializationSignal(r.Context(), initialized(g.releaseMemory))))
	}
}

// serveWatch serves a watch without a watch cache.
func serveWatch(handler http.Handler, w http.ResponseWriter, r *http.Request, g *grant) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	end := newEnding(w, cancel)
	defer end.served()
	f := newFollowing(g, end.end)
	ctx = context.WithValue(ctx, followingKey{}, f)
	w = f.wrap(w)
	if g.holdsMore() {
		b := &beginning{grant: g}
		ctx = context.WithValue(ctx, beginningKey{}, b)
		w = b.wrap(w)
		timer := time.AfterFunc(readPatience, func() {
			if !b.isOver() {
				end.end() // its client does not read it
			}
		})
		defer timer.Stop()
	}
	handler.ServeHTTP(w, r.WithContext(ctx))
}

// ending ends a request that may wait for its client to read.
type ending struct {
	cancel context.CancelFunc

	mu       sync.Mutex
	response *http.ResponseController // nil when it is served
}

func newEnding(w http.ResponseWriter, cancel context.CancelFunc) *ending {
	return &ending{cancel: cancel, response: http.NewResponseController(w)}
}

func (e *ending) end() {
	e.cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.response != nil {
		_ = e.response.SetWriteDeadline(time.Now())
	}
}

// served is called when the request is served: its response is not to be used any
// more.
func (e *ending) served() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.response = nil
}

// initialized is called when a watch has sent the objects that exist.
type initialized func()

// Signal implements flowcontrol.InitializationSignal.
func (i initialized) Signal() { i() }

// Wait implements flowcontrol.InitializationSignal. Nothing waits.
func (initialized) Wait() {}

// respond answers a request that is not served. A client that does not read the
// answer must not keep its request.
func respond(err error, w http.ResponseWriter, r *http.Request) {
	controller := http.NewResponseController(w)
	if controller.SetWriteDeadline(time.Now().Add(refusalPatience)) == nil {
		defer func() { _ = controller.SetWriteDeadline(time.Time{}) }() // a connection has other requests
	}
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{}, w, r)
	_ = controller.Flush() // before the deadline is another
}

// explain converts a rejection to a status that says what to do. The same is
// sent to a client that has gone.
func explain(err error) error {
	text := "too many requests: try again later"
	if r, ok := errors.AsType[rejection](err); ok {
		text = Reason(r).advice()
	}
	return apierrors.NewTooManyRequests(text, retryAfter)
}

// advice tells a client what exceeds a limit, and what to do.
func (r Reason) advice() string {
	const higher = ", or ask the platform's administrator for a higher limit"
	switch r {
	case ReasonReads:
		return "this cluster has as many reads in flight as it may have: send fewer at a time" + higher
	case ReasonWrites:
		return "this cluster has as many writes in flight as it may have: send fewer at a time" + higher
	case ReasonWatches:
		return "this cluster has as many watches, logs and other long-running requests as it may have: end some" + higher
	case ReasonWebhooks:
		return "this cluster has as many calls of webhooks at itself in flight as it may have: " +
			"send fewer writes at a time" + higher
	case ReasonHost:
		return "other clusters use all the memory that this platform has for large requests: try again later, or list in pages"
	case ReasonPressure:
		return "this platform is short of memory, and the requests of this cluster use the most: send fewer at a time, or list in pages"
	case ReasonHeads:
		return "the URLs, headers and selectors of the requests that this cluster has in flight take all the memory that they may: " +
			"shorten selectors, or end some watches"
	case ReasonMemory:
		return "other requests of this cluster use all the memory that it may have for them: send fewer at a time, or list in pages"
	default:
		return "too many requests: try again later"
	}
}

func (t *Tenant) stored() Stored {
	if t.config.Stored == nil {
		return Stored{}
	}
	return t.config.Stored()
}
