package front

import (
	"net/http"

	"k8s.io/streaming/pkg/httpstream"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
)

// class is a kind of requests, by what they cost.
type class string

const (
	readClass    class = "read"
	writeClass   class = "write"
	watchClass   class = "watch"
	upgradeClass class = "upgrade"
	proxyClass   class = "proxy"
	refusedClass class = "refused"
)

// isStream reports whether requests of the class last as long as the client
// wishes.
func (c class) isStream() bool { return c == watchClass || c == upgradeClass || c == proxyClass }

// classOf returns the class of a request that is forwarded.
func classOf(r *http.Request, asked resolve.Asked) class {
	query := r.URL.Query()
	switch {
	case httpstream.IsUpgradeRequest(r):
		return upgradeClass
	case asked.IsProxied():
		return proxyClass
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return writeClass
	case query.Get("watch") != "" || query.Get("follow") != "":
		return watchClass
	}
	return readClass
}
