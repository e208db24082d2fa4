package front

import (
	"net/http"
	"strconv"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
)

// issuerMaxAge is how many seconds clients may keep a document of an issuer.
const issuerMaxAge = "300"

// document is one of an issuer of tokens.
type document struct {
	tenant, contentType string
	content             []byte
}

// publicDocument returns the document that a request asks for, if it is of an
// issuer that is public. Such requests need no credentials, and do not reach the
// control plane: the gateway has the documents.
func (h *Handler) publicDocument(method string, asked resolve.Asked) (document, bool) {
	var contentType string
	var read func(*tenants.Tenant) []byte
	switch asked.Path {
	case "/.well-known/openid-configuration":
		contentType, read = "application/json", (*tenants.Tenant).OpenIDConfiguration
	case "/openid/v1/jwks":
		contentType, read = "application/jwk-set+json", (*tenants.Tenant).KeySet
	default:
		return document{}, false
	}
	if asked.Tenant == "" || method != http.MethodGet && method != http.MethodHead {
		return document{}, false
	}
	entry, _ := h.Index.Find(asked.Tenant)
	tenant := h.Index.ByKey(entry.Key)
	if tenant == nil {
		return document{}, false
	}
	content := read(tenant)
	return document{tenant: tenant.Key, contentType: contentType, content: content}, len(content) > 0
}

// servePublic writes a document. Clients of one address share its limits.
func (h *Handler) servePublic(w *recorder, r *http.Request, c *call, found document) {
	c.tenant, c.class = found.tenant, readClass
	done, err := h.inFlight.take(addressOf(r, found.tenant), c.class, h.Limits)
	if err != nil {
		reject(w, r, err)
		return
	}
	defer done()
	if err := h.Limits.bound(w, r, c.class); err != nil {
		reject(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", found.contentType)
	header.Set("Content-Length", strconv.Itoa(len(found.content)))
	header.Set("Cache-Control", "public, max-age="+issuerMaxAge)
	if r.Method == http.MethodGet {
		_, _ = w.Write(found.content) // fails with the connection
	}
}
