// Package requests classifies, counts and times the syncer's requests to
// apiservers.
package requests

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/transport"
)

// Sides of the syncer.
const (
	Super  = "super"
	Tenant = "tenant"
)

// failed is the status code of a request without an answer.
const failed = "none"

// Counter counts requests by side, verb, resource and status code, and the open
// watches. It has no label for the tenant: the number of series would grow
// without bound.
type Counter struct {
	requests *prometheus.CounterVec
	watches  *prometheus.GaugeVec
}

// NewCounter creates a counter and registers its metrics.
func NewCounter(registerer prometheus.Registerer) (*Counter, error) {
	c := &Counter{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vc_syncer_requests_total",
			Help: "Requests sent to apiservers, by side (super or tenant), verb, resource, and status code of the response, or none.",
		}, []string{"side", "verb", "resource", "code"}),
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vc_syncer_open_watches",
			Help: "Open watches, by side (super or tenant).",
		}, []string{"side"}),
	}
	if err := registerer.Register(c.requests); err != nil {
		return nil, err
	}
	return c, registerer.Register(c.watches)
}

// Wrap counts the requests of a transport to a side, and times them if their
// context has a [Timer].
func (c *Counter) Wrap(side string) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			verb, resource := classify(r)
			tally(r.Context(), side)
			if IsWatch(r) {
				return c.watch(next, r, side, verb, resource)
			}
			end := begin(r.Context(), side)
			answer, err := next.RoundTrip(r)
			c.count(answer, err, side, verb, resource)
			switch {
			case end == nil:
			case err != nil:
				end(false)
			default:
				answer.Body = &openBody{answer.Body, sync.OnceFunc(func() { end(true) })}
			}
			return answer, err
		})
	}
}

// watch sends a request that opens a watch.
func (c *Counter) watch(next http.RoundTripper, r *http.Request, side, verb, resource string) (*http.Response, error) {
	answer, err := next.RoundTrip(r)
	c.count(answer, err, side, verb, resource)
	if err == nil {
		answer.Body = countOpen(answer.Body, c.watches.WithLabelValues(side))
	}
	return answer, err
}

// count counts a request that was answered or failed.
func (c *Counter) count(answer *http.Response, err error, side, verb, resource string) {
	code := failed
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	c.requests.WithLabelValues(side, verb, resource, code).Inc()
}

// openBody is the body of an answer that calls a function when it is closed.
type openBody struct {
	io.ReadCloser

	closed func()
}

// countOpen counts a body until it is first closed.
func countOpen(body io.ReadCloser, open prometheus.Gauge) io.ReadCloser {
	open.Inc()
	return &openBody{body, sync.OnceFunc(open.Dec)}
}

// Close closes the body.
func (b *openBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

// RoundTripper is a function that implements http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// classify returns the verb and the resource, with its subresource, of a
// request (Kubernetes API Concepts: resource URIs).
func classify(r *http.Request) (verb, resource string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return strings.ToLower(r.Method), "none"
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource = parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verbOf(r, len(parts) > 1), resource
}

// IsWatch reports whether a request opens a watch.
func IsWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// verbOf returns the API's verb for a request for one object or for a
// collection.
func verbOf(r *http.Request, one bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodGet:
		if IsWatch(r) {
			return "watch"
		}
		if !one {
			return "list"
		}
	case http.MethodDelete:
		if !one {
			return "deletecollection"
		}
	}
	return strings.ToLower(r.Method)
}
