package inflight

import (
	"net/http"
	"runtime"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// yielding is the response of a large read. Its encoding takes a processor for
// seconds, and Go preempts it only every ten milliseconds, for which each step
// of a small request would wait.
type yielding struct{ http.ResponseWriter }

// yield returns a response after each part of which other goroutines run.
func yield(w http.ResponseWriter) http.ResponseWriter {
	return responsewriter.WrapForHTTP1Or2(yielding{w})
}

// Write implements http.ResponseWriter.
func (y yielding) Write(part []byte) (int, error) {
	n, err := y.ResponseWriter.Write(part)
	runtime.Gosched()
	return n, err
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (y yielding) Unwrap() http.ResponseWriter { return y.ResponseWriter }
