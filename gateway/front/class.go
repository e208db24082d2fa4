package front

import (
	"net/http"
	"strings"

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
	case query.Has("watch") || query.Has("follow") || isWatchPath(asked.Path):
		return watchClass
	}
	return readClass
}

// isWatchPath reports whether a path is that of a watch without the parameter, as
// old clients send it: /api/v1/watch/pods.
func isWatchPath(path string) bool {
	core := strings.HasPrefix(path, "/api/")
	elements := strings.SplitN(path, "/", 6) // the first is empty
	return core && len(elements) > 3 && elements[3] == "watch" || !core && len(elements) > 4 && elements[1] == "apis" && elements[4] == "watch"
}
