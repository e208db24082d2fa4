package convert

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

func TestReply(t *testing.T) {
	large := `{"items":["` + strings.Repeat("x", document.Chunk) + `"]}`
	for name, tt := range map[string]struct {
		accepts, text string
		compressed    bool
	}{
		"a large one":           {"gzip", large, true},
		"one for an old client": {"", large, false},
		"a small one":           {"gzip", `{"items":[]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", tt.accepts)
			w := httptest.NewRecorder()
			if err := writeStream(w, r, responseOf(tt.text), listOfConfigMaps()); err != nil {
				t.Fatal(err)
			}
			got := io.Reader(w.Body)
			if compressed := w.Header().Get("Content-Encoding") == "gzip"; compressed != tt.compressed {
				t.Fatalf("compressed: %t, want %t", compressed, tt.compressed)
			} else if compressed {
				var err error
				if got, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(err)
				}
			}
			if data, err := io.ReadAll(got); string(data) != tt.text || err != nil || w.Header().Get("Content-Type") != jsonType {
				t.Errorf("got %d bytes of %s, %v, want %d", len(data), w.Header().Get("Content-Type"), err, len(tt.text))
			}
		})
	}
}

// TestReplyBreaks: an error before the beginning is returned, and one after it
// breaks the connection.
func TestReplyBreaks(t *testing.T) {
	wrong := `,{"metadata":{"namespace":"blue-shop"}}]}`
	r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	if err := writeStream(w, r, responseOf(`{"items":[{}`+wrong), listOfConfigMaps()); err == nil || w.Body.Len() > 0 || w.Header().Get("Content-Type") != "" {
		t.Errorf("got %v, written %s", err, w.Body)
	}
	defer func() {
		if got, _ := recover().(error); !errors.Is(got, http.ErrAbortHandler) {
			t.Errorf("the handler ends with %v", got)
		}
	}()
	_ = writeStream(w, r, responseOf(`{"items":["`+strings.Repeat("x", document.Chunk)+`"`+wrong), listOfConfigMaps())
	t.Error("the response ends as if it was whole")
}

func responseOf(text string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewBufferString(text))}
}

func listOfConfigMaps() *document.Response {
	kind := kinds.Find("", "configmaps")
	return &document.Response{Namer: naming.Namer{Key: "team-0a1b2c-red", Namespaces: noNamespaces{}}, Kind: kind, Fields: kind.Fields(), Many: true}
}

type noNamespaces struct{}

func (noNamespaces) TenantName(string, string) (string, bool) { return "", false }
