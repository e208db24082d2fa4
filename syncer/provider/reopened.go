package provider

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// verifyEvery is the minimum interval of verifying a tenant's identity because
// its watches open.
const verifyEvery = time.Minute

// namespacesPath is the path of a watch of all namespaces.
const namespacesPath = "/api/v1/namespaces"

// reopened verifies the identity of a tenant when a watch opens: the previous
// watch may have ended because the apiserver or its data was replaced. A watch
// from a resource version that the new one has not reached would not fail.
type reopened struct {
	ctx    context.Context // ends with the tenant
	verify func(context.Context) error

	asking atomic.Bool
	last   atomic.Int64
	// from is the resource version of the last watch of namespaces. Other
	// resources may be in another store.
	from atomic.Pointer[string]
}

// newReopened returns the reopened of a tenant whose identity is known.
func newReopened(ctx context.Context, verify func(context.Context) error) *reopened {
	w := &reopened{ctx: ctx, verify: verify}
	w.last.Store(time.Now().UnixNano())
	return w
}

// wrap verifies the identity when a watch of a transport opens.
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

// note records the tenant's resource version when a watch opened.
func (w *reopened) note(watch *url.URL) {
	ofNamespaces := strings.HasSuffix(watch.Path, namespacesPath) || strings.HasSuffix(watch.Path, watchstream.Path)
	if from := watch.Query().Get("resourceVersion"); from != "" && ofNamespaces {
		w.from.Store(&from)
	}
}

// newest returns the newest known resource version; empty if none is known.
func (w *reopened) newest() string {
	if from := w.from.Load(); from != nil {
		return *from
	}
	return ""
}

// ask verifies the identity once, when the interval has passed. The cluster
// handles the error itself.
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
