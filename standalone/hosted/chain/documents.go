package chain

import (
	"errors"
	"net/http"
)

// maxDocument limits the documents of discovery and OpenAPI that are read from
// aggregated APIs into memory, without compression. Those of all built-in APIs
// together have less.
const maxDocument = 8 << 20

var errTooLarge = errors.New("the document of the aggregated API is too large")

// limitDocument returns a handler whose responses end with an error beyond the
// limit.
func limitDocument(served http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.ServeHTTP(&limitedWriter{ResponseWriter: w, left: maxDocument}, r)
	})
}

// limitedWriter fails the write of more bytes than are left. The proxy ends the
// request to the aggregated API then.
type limitedWriter struct {
	http.ResponseWriter

	left     int
	exceeded bool
}

// Write implements http.ResponseWriter.
func (w *limitedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		w.exceeded, w.left = true, 0
		return 0, errTooLarge
	}
	w.left -= len(p)
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *limitedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
