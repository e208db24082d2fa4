package convert

import (
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/forward"
)

// Headers of streams that are forwarded, in both directions.
var streamHeaders = []string{
	"Connection", "Upgrade", "Content-Type", "User-Agent", "X-Stream-Protocol-Version", "X-Accepted-Stream-Protocol-Versions",
	"Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions", "Sec-Websocket-Accept",
}

// isStream reports whether the request is for bytes of a container.
func (c *call) isStream() bool {
	return c.info.Subresource != "" && c.kind.Subresources[c.info.Subresource].Form == kinds.Stream
}

// stream serves a request for bytes of a container, which are not converted.
func (c *call) stream(w http.ResponseWriter, r *http.Request) error {
	transport := c.Fenced
	if httpstream.IsUpgradeRequest(r) {
		transport = c.FencedUpgrades
	}
	as := http.Header{}
	if err := c.setRequester(r.Context(), as); err != nil {
		return err
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = c.target(only(r.URL.Query(), streamParameters)), ""
			keep(p.Out.Header, streamHeaders)
			forward.DropTokens(p.Out.Header)
			maps.Copy(p.Out.Header, as)
		},
		Transport:      transport,
		FlushInterval:  -1, // what a container writes
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: c.convertError,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			responsewriters.ErrorNegotiated(errSilent, scheme.Codecs, schema.GroupVersion{}, w, r)
		},
	}
	proxy.ServeHTTP(w, r)
	return nil
}

// keep removes all other headers.
func keep(header http.Header, names []string) {
	for name := range header {
		if !slices.Contains(names, name) {
			delete(header, name)
		}
	}
}

// convertError converts the error of a request for a stream: a Status, or a text
// of the node.
func (c *call) convertError(response *http.Response) error {
	keep(response.Header, streamHeaders)
	if response.StatusCode < http.StatusBadRequest {
		return nil
	}
	return replaceBody(response, c.errorUp)
}

func (c *call) errorUp(data []byte) []byte {
	object, err := document.ParseTrusted(data)
	if err == nil && c.converter(nil).Up(object) == nil {
		if written, err := document.Write(object); err == nil {
			return written
		}
	}
	return []byte(c.text(data))
}

// text returns a text of the super cluster as the tenant sees it.
func (c *call) text(data []byte) string {
	return c.namer.Text(strings.ToValidUTF8(string(data), ""), c.info.Namespace)
}
