package typecheck

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type server struct{}

func (server) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Header: http.Header{"Retry-After": {"3600"}}, Body: io.NopCloser(endless{})}, nil
}

// TestResponsesEnd: of a document that does not end, little is read.
func TestResponsesEnd(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := bounded{server{}}.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if after := response.Header.Get("Retry-After"); after != "" {
		t.Errorf("it is sent again after %s s", after)
	}
	data, err := io.ReadAll(response.Body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); !tooLarge || len(data) > maxDocument {
		t.Errorf("read %d bytes: %v", len(data), err)
	}
}
