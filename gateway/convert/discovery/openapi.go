package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const openAPIPath = "/openapi/v3"

// isHealth reports whether a path tells of the health or the version of the
// super cluster, which are those of the tenant. Paths below, of single checks,
// are not among them.
func isHealth(path string) bool {
	switch path {
	case "/version", "/livez", "/readyz", "/healthz":
		return true
	}
	return false
}

// index is the document at openAPIPath: where the schemas of each version are.
type index struct {
	Paths map[string]json.RawMessage `json:"paths"`
}

// serveIndex serves where the schemas are, of the versions that the tenant has.
func (v *View) serveIndex(w http.ResponseWriter, r *http.Request, documents *snapshot) {
	found, err := v.index(r.Context())
	if err != nil {
		reject(w, r, apierrors.NewServiceUnavailable("the schemas of the super cluster are not available"))
		return
	}
	own := index{Paths: map[string]json.RawMessage{}}
	for path, super := range documents.schemas {
		if entry, ok := found.Paths[super]; ok {
			own.Paths[path] = without(documents.groups.prefix, entry)
		}
	}
	data, err := json.Marshal(own)
	if err != nil {
		reject(w, r, apierrors.NewInternalError(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the client is gone
}

func (h *Handler) index(ctx context.Context) (*index, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, err := h.super.Get().AbsPath(openAPIPath).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("get %s of the super cluster: %w", openAPIPath, err)
	}
	found := &index{}
	if err := json.Unmarshal(data, found); err != nil {
		return nil, fmt.Errorf("read %s of the super cluster: %w", openAPIPath, err)
	}
	return found, nil
}

// serveSchemas serves the schemas at a path of the super cluster. Those of the
// tenant's CRDs are in JSON only, since they are changed.
func (v *View) serveSchemas(w http.ResponseWriter, r *http.Request, super, prefix string) {
	if prefix == "" || !strings.Contains(super, prefix) {
		v.forward(w, r, openAPIPath+"/"+super, nil)
		return
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	v.forward(w, r, openAPIPath+"/"+super, func(response *http.Response) error {
		defer func() { _ = response.Body.Close() }()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		data = without(prefix, data)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		response.Header.Set("Content-Length", strconv.Itoa(len(data)))
		return nil
	})
}

// without takes what begins the groups of the tenant's CRDs in the super cluster
// out of a document: names of types have it, too, within them, and names of
// operations in the form Vc0123.
func without(prefix string, data []byte) []byte {
	if prefix == "" {
		return data
	}
	operation := strings.NewReplacer("-", "", ".", "").Replace(prefix)
	for _, form := range []string{prefix, operation, strings.ToUpper(operation[:1]) + operation[1:]} {
		data = bytes.ReplaceAll(data, []byte(form), nil)
	}
	return data
}

// forward serves a document of the super cluster, which change may change.
// Nothing of the request reaches it but what the client accepts and has.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request, path string, change func(*http.Response) error) {
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Header = http.Header{}
			for _, key := range []string{"Accept", "If-None-Match"} {
				if values := p.In.Header[key]; len(values) > 0 {
					p.Out.Header[key] = values
				}
			}
			p.Out.URL.Path, p.Out.URL.RawPath = path, ""
			p.SetURL(h.url)
		},
		ModifyResponse: change,
		Transport:      h.transport,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			reject(w, r, apierrors.NewServiceUnavailable("the super cluster does not answer"))
		},
	}
	proxy.ServeHTTP(w, r)
}
