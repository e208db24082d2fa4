package provider

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// verifyEvery is how often at most a tenant is asked who it is because its watches open.
const verifyEvery = time.Minute

// namespacesPath is what a watch of all namespaces opens.
const namespacesPath = "/api/v1/namespaces"

// reopened has a tenant asked whether it is still the same when a watch opens: the one before may have ended because its
// apiserver was replaced, or its data. A watch from a resource version that the new one has not reached would just wait.
type reopened struct {
	ctx    context.Context // ends with the tenant
	verify func(context.Context) error

	asking atomic.Bool
	last   atomic.Int64
	// from is the resource version that the last watch of namespaces began at. Others may be kept in another store.
	from atomic.Pointer[string]
}

// newReopened makes one for a tenant whose identity is known.
func newReopened(ctx context.Context, verify func(context.Context) error) *reopened {
	w := &reopened{ctx: ctx, verify: verify}
	w.last.Store(time.Now().UnixNano())
	return w
}

// wrap has watches lead to the question.
func (w *reopened) wrap(next http.RoundTripper) http.RoundTripper {
	return requests.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if requests.IsWatch(r) {
			w.note(r.URL)
			if w.asking.CompareAndSwap(false, true) {
				go w.ask()
			}
		}
		return next.RoundTrip(r)
	})
}

// note notes how far the tenant had come when a watch opened.
func (w *reopened) note(watch *url.URL) {
	if from := watch.Query().Get("resourceVersion"); from != "" && strings.HasSuffix(watch.Path, namespacesPath) {
		w.from.Store(&from)
	}
}

// newest is the newest resource version that is known to have been; empty if none.
func (w *reopened) newest() string {
	if from := w.from.Load(); from != nil {
		return *from
	}
	return ""
}

// ask asks once, when it is time for that. An error that says something is seen by the cluster itself.
func (w *reopened) ask() {
	defer w.asking.Store(false)
	select {
	case <-w.ctx.Done():
		return
	case <-time.After(time.Until(time.Unix(0, w.last.Load()).Add(verifyEvery))):
	}
	w.last.Store(time.Now().UnixNano())
	_ = w.verify(w.ctx)
}
