package discovery

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// serveSwagger serves a document with native kinds, the platform's, and those of
// blue's CRDs.
func (*superCluster) serveSwagger(w http.ResponseWriter, r *http.Request) {
	const etag = `"1"`
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	ofBlue := names.ConvertedGroup(blue)
	refer := func(name string) map[string]any {
		return map[string]any{"get": map[string]any{
			"operationId": "list" + strings.ToUpper(ofBlue[:1]) + strings.NewReplacer("-", "", ".", "").Replace(ofBlue[1:]) + "ExampleComV1Gadget",
			"responses":   map[string]any{"200": map[string]any{"description": "OK", "schema": map[string]any{"$ref": "#/definitions/" + name}}},
		}}
	}
	const pod, container, secret = "io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.Container", "com.example.secret.v1.Widget"
	gadget := "com.example." + ofBlue + "v1.Gadget"
	_ = json.NewEncoder(w).Encode(map[string]any{ //nolint:errchkjson // the client is gone
		"swagger": "2.0", "info": map[string]any{"title": "Kubernetes", "version": "v1"},
		"paths": map[string]any{
			"/api/v1/namespaces/{namespace}/pods": refer(pod), "/api/v1/namespaces/{name}/status": refer(pod), "/api/v1/nodes": refer(pod),
			"/api/v1/namespaces/{namespace}/pods/{name}/binding":     refer(pod),
			"/apis/resource.k8s.io/v1/devicetaintrules":              refer(secret),
			"/apis/secret.example.com/v1/widgets":                    refer(secret),
			"/apis/" + ofBlue + "example.com/v1/gadgets":             refer(gadget),
			"/apis/" + names.ConvertedGroup(red) + "a.com/v1/things": refer(secret),
			"/apis/apps/": refer(container), "/apis/secret.example.com/": refer(secret), "/logs/": refer(secret), "/version/": refer(container),
		},
		"definitions": map[string]any{
			pod:       map[string]any{"properties": map[string]any{"a": map[string]any{"$ref": "#/definitions/" + container}}},
			container: map[string]any{"type": "object"}, secret: map[string]any{"type": "object"}, gadget: map[string]any{"type": "object"},
		},
	})
}

// TestSwagger: a tenant has the paths and the definitions of what it is served,
// in its own names.
func TestSwagger(t *testing.T) {
	handler, _, ofRed := newHandler(t)
	ofBlue := httptest.NewServer(handler.For(blue, crdsOf(t)))
	t.Cleanup(ofBlue.Close)
	get := func(server *httptest.Server, headers ...string) (*http.Response, []byte) {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+swaggerPath, nil)
		for pair := range slices.Chunk(headers, 2) {
			r.Header.Set(pair[0], pair[1])
		}
		server.Config.Handler.ServeHTTP(w, r)
		return w.Result(), w.Body.Bytes()
	}
	native := []string{"/api/v1/namespaces/{name}/status", "/api/v1/namespaces/{namespace}/pods", "/api/v1/nodes", "/apis/apps/", "/version/"}
	for _, tt := range []struct {
		of                 *httptest.Server
		paths, definitions []string
	}{
		{ofRed, native, []string{"io.k8s.api.core.v1.Container", "io.k8s.api.core.v1.Pod"}},
		{
			ofBlue, append(slices.Clone(native), "/apis/example.com/v1/gadgets"),
			[]string{"com.example.v1.Gadget", "io.k8s.api.core.v1.Container", "io.k8s.api.core.v1.Pod"},
		},
	} {
		response, data := get(tt.of)
		var document struct {
			Paths       map[string]any `json:"paths"`
			Definitions map[string]any `json:"definitions"`
		}
		if err := json.Unmarshal(data, &document); err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response.Status, err)
		}
		slices.Sort(tt.paths)
		if diff := cmp.Diff(tt.paths, slices.Sorted(maps.Keys(document.Paths))); diff != "" {
			t.Errorf("paths (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(tt.definitions, slices.Sorted(maps.Keys(document.Definitions))); diff != "" {
			t.Errorf("definitions (-want +got):\n%s", diff)
		}
		hash := strings.Trim(strings.TrimPrefix(names.ConvertedGroup(blue), "vc-"), ".")
		if tt.of == ofBlue && strings.Contains(string(data), hash) {
			t.Errorf("the document has the hash of the groups: %s", data)
		}
		etag := response.Header.Get("ETag")
		if response, _ := get(tt.of, "If-None-Match", etag); response.StatusCode != http.StatusNotModified {
			t.Errorf("the same again: %s", response.Status)
		}
	}
	response, data := get(ofBlue, "Accept", swaggerProtobuf)
	document := &openapiv2.Document{}
	if err := proto.Unmarshal(data, document); err != nil || response.Header.Get("Content-Type") != swaggerProtobuf || len(document.GetPaths().GetPath()) != 6 {
		t.Errorf("in protobuf: %v, %v, %d paths", err, response.Header, len(document.GetPaths().GetPath()))
	}
}
