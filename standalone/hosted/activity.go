package hosted

import (
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// Activity is the use of a control plane by clients outside of the platform.
type Activity struct {
	// Open is the number of requests in flight, watches included.
	Open int
	// Last is when the last request ended; zero if there was none since the
	// start.
	Last time.Time
	// Ready is when the control plane became ready.
	Ready time.Time
}

// activity counts the requests that are authorized and come neither from the
// control plane's own controllers nor from the platform.
type activity struct {
	isPlatform func(*tls.ConnectionState) bool

	mu  sync.Mutex
	now Activity
}

// Activity returns the use of the control plane so far.
func (c *ControlPlane) Activity() Activity { return c.activity.get() }

func (a *activity) get() Activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// begin records that the control plane is ready.
func (a *activity) begin(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.Ready = now
}

// add counts requests that begin, or end with -1.
func (a *activity) add(requests int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.Open += requests
	a.now.Last = time.Now()
}

// count counts the requests of a handler that is called for authorized ones
// only. Anonymous users may read health and version, which is no use.
func (a *activity) count(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isInternal(r.Context()) || a.isPlatform(r.TLS) || isAnonymous(r) {
			handler.ServeHTTP(w, r)
			return
		}
		a.add(1)
		defer a.add(-1)
		handler.ServeHTTP(w, r)
	})
}

// count counts the use of the control plane by authorized requests.
func (c *ControlPlane) count(handler http.Handler) http.Handler {
	return c.admitConnections(c.activity.count(handler))
}

func isAnonymous(r *http.Request) bool {
	who, ok := apirequest.UserFrom(r.Context())
	return !ok || who.GetName() == user.Anonymous
}

// wrapAPIs wraps what serves the authorized requests of an apiserver.
func wrapAPIs(config *app.Config, wrap func(http.Handler) http.Handler) {
	outer := &config.Aggregator.GenericConfig.Config
	build := outer.BuildHandlerChainFunc
	outer.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(wrap(handler), c)
	}
}
