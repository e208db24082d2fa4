package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// Endpoint serves the changes of a tenant.
type Endpoint struct {
	// Feed has the tenant's changes, Tenant is its name there.
	Feed   *feed.Feed
	Tenant string
	// IsPlatform reports whether the platform authenticated a connection.
	IsPlatform func(*tls.ConnectionState) bool
	// Failed is called with the reason why a stream ends before its client has
	// ended it. The reason quotes nothing from objects.
	Failed func(error)
}

// Wrap returns a handler that serves the endpoint, and all other requests with
// next. It must be called for authorized requests only.
func (e Endpoint) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != watchstream.Path || !e.IsPlatform(r.TLS) {
			next.ServeHTTP(w, r)
			return
		}
		e.serve(w, r)
	})
}

func (e Endpoint) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "the changes can only be read", http.StatusMethodNotAllowed)
		return
	}
	kinds, err := watchstream.ParseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	s := newStream(ctx, cancel, e, w)
	defer s.close()
	if err := s.subscribe(kinds); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", watchstream.ContentType)
	w.Header().Set("Cache-Control", "no-cache")
	err = s.run(func() { flowcontrol.WatchInitialized(ctx) })
	if r.Context().Err() == nil && !errors.Is(err, feed.ErrEnded) {
		e.Failed(err)
	}
}
