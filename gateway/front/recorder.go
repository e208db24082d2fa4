package front

import (
	"bufio"
	"net"
	"net/http"
)

// recorder remembers the status and the size of a response.
type recorder struct {
	http.ResponseWriter

	code    int
	written int64
}

// status returns the status of the response.
func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.written += int64(n)
	return n, err
}

// Hijack implements http.Hijacker: what is written then is an upgrade.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.code = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}

// Unwrap returns the writer that can flush, hijack and set deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush implements http.Flusher, which watches of projects need.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() } // fails on a connection that is closed
