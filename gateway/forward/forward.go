package forward

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
)

// Request is what is forwarded.
type Request struct {
	// Way leads to the tenant.
	Way *Way
	// Asked is the path and the query for it.
	Asked resolve.Asked
	// User is the user of a verified client certificate; nil if the request has
	// other credentials, or none, which are forwarded as they are.
	User user.Info
	// Lasts: the response is not expected to end soon.
	Lasts bool
	// Failed writes the response to a request that could not be forwarded.
	Failed func(http.ResponseWriter, *http.Request, error)
}

// bufferBytes is the size of the buffers through which responses are copied, and
// streamBufferBytes that for responses that last: most events of a watch are
// smaller.
const bufferBytes, streamBufferBytes = 32 << 10, 4 << 10

// buffers are reused by all requests.
type buffers struct {
	size int
	pool sync.Pool
}

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return *buffer
	}
	return make([]byte, b.size)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }

// Forwarder forwards requests.
type Forwarder struct{ short, long buffers }

// NewForwarder makes a forwarder.
func NewForwarder() *Forwarder {
	return &Forwarder{short: buffers{size: bufferBytes}, long: buffers{size: streamBufferBytes}}
}

// ErrNoUsers is a tenant that takes no users from the gateway.
var ErrNoUsers = errors.New("the control plane takes no client certificates from the gateway: use a token, or its own address")

// Forward serves a request by the apiserver of a tenant.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, of Request) {
	target, err := of.Asked.URL(of.Way.server)
	if err != nil {
		of.Failed(w, r, err)
		return
	}
	chosen := of.Way.plain
	if of.User != nil {
		if chosen, err = of.Way.forUser(r.Header, of.User); err != nil {
			of.Failed(w, r, err)
			return
		}
	}
	transport := chosen.http2
	if httpstream.IsUpgradeRequest(r) {
		transport = chosen.http1
	}
	buffers := &f.short
	if of.Lasts {
		buffers = &f.long
	}
	ctx, end := of.Way.Bound(r.Context())
	defer end()
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, ""
			p.SetXForwarded()
			of.Way.stamp(p.Out.Header, of.User)
		},
		Transport:      transport,
		FlushInterval:  -1, // events of a watch
		BufferPool:     buffers,
		ErrorLog:       log.New(io.Discard, "", 0), // a client causes each line
		ModifyResponse: func(response *http.Response) error { return keepPrefix(response, of.Asked.Prefix) },
		ErrorHandler:   of.Failed,
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// The headers in which an apiserver reads the user of a request from a proxy
// that it trusts.
const (
	remotePrefix      = "X-Remote-"
	remoteUser        = remotePrefix + "User"
	remoteGroup       = remotePrefix + "Group"
	remoteExtraPrefix = remotePrefix + "Extra-"
)

// forUser returns the transports for a user of a client certificate.
func (w *Way) forUser(header http.Header, who user.Info) (*transports, error) {
	if w.stamped == nil {
		return nil, ErrNoUsers
	}
	if w.impersonates {
		return w.stamped, checkImpersonation(header, who)
	}
	return w.stamped, nil
}

// stamp removes the headers by which a proxy says who asks, in any spelling. For
// the user of a client certificate, or a member, it removes tokens and adds the
// headers that name the user.
func (w *Way) stamp(header http.Header, who user.Info) {
	for key := range header {
		if isBelow(key, remotePrefix) {
			delete(header, key)
		}
	}
	if who == nil {
		return
	}
	header.Del("Authorization")
	DropTokens(header)
	if w.impersonates {
		impersonate(header, who)
	} else {
		nameRemote(header, who)
	}
}

// nameRemote adds the headers by which a proxy says who asks.
func nameRemote(header http.Header, who user.Info) {
	header.Set(remoteUser, who.GetName())
	header[remoteGroup] = append([]string(nil), who.GetGroups()...)
	for key, values := range who.GetExtra() {
		header[remoteExtraPrefix+url.PathEscape(key)] = append([]string(nil), values...)
	}
}

// tokenProtocol begins the WebSocket protocol in which browsers send a token.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

const webSocketProtocols = "Sec-WebSocket-Protocol"

// TokensIn returns the tokens among the WebSocket protocols, in base64.
func TokensIn(header http.Header) []string {
	_, tokens := splitProtocols(header)
	return tokens
}

// DropTokens removes tokens from the WebSocket protocols.
func DropTokens(header http.Header) {
	others, _ := splitProtocols(header)
	if header.Del(webSocketProtocols); len(others) > 0 {
		header.Set(webSocketProtocols, strings.Join(others, ", "))
	}
}

// splitProtocols returns the WebSocket protocols that are tokens, without what they
// begin with in any case, and the others.
func splitProtocols(header http.Header) (others, tokens []string) {
	const begin = len(tokenProtocol)
	for _, values := range header.Values(webSocketProtocols) {
		for protocol := range strings.SplitSeq(values, ",") {
			protocol = strings.TrimSpace(protocol)
			if len(protocol) >= begin && strings.EqualFold(protocol[:begin], tokenProtocol) {
				tokens = append(tokens, protocol[begin:])
			} else {
				others = append(others, protocol)
			}
		}
	}
	return others, tokens
}

// isBelow reports whether the name of a header begins with a prefix, in any
// spelling.
func isBelow(key, prefix string) bool {
	spelled := strings.ReplaceAll(key, "_", "-")
	return len(spelled) >= len(prefix) && strings.EqualFold(spelled[:len(prefix)], prefix)
}

// keepPrefix puts the prefix of the tenant in front of a redirect to a path of
// the same server.
func keepPrefix(response *http.Response, prefix string) error {
	location := response.Header.Get("Location")
	if prefix != "" && strings.HasPrefix(location, "/") && !strings.HasPrefix(location, "//") {
		response.Header.Set("Location", prefix+location)
	}
	return nil
}
