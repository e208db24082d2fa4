package chain

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// inProcessHost is the host in the URLs of requests inside this process. It is
// never resolved.
const inProcessHost = "in-process.internal"

// transport sends requests to a handler in this process, as the control plane
// of a tenant itself.
type transport struct {
	handler http.Handler
	// tenant is the tenant of all requests. Without one, the context of each
	// request has it.
	tenant string
}

// inProcess returns a client configuration for a handler.
func inProcess(handler http.Handler, tenant string) *rest.Config {
	return &rest.Config{
		Host:      "https://" + inProcessHost,
		Transport: &transport{handler: handler, tenant: tenant},
		QPS:       -1,
	}
}

type identityKey struct{}

// identityOf returns the user of a request that was sent inside this process. A
// request from outside cannot set it.
func identityOf(ctx context.Context) (user.Info, bool) {
	found, ok := ctx.Value(identityKey{}).(user.Info)
	return found, ok
}

// IsInternal reports whether the control plane itself sent a request, in this
// process.
func IsInternal(ctx context.Context) bool {
	_, internal := identityOf(ctx)
	return internal
}

// itself is the user as which a control plane sends requests to itself.
func itself() user.Info {
	return &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup}}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), identityKey{}, itself()))
	if t.tenant != "" {
		ctx = keyspace.NewContext(ctx, t.tenant)
	}
	inner := req.Clone(ctx)
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	inner.RequestURI, inner.RemoteAddr = inner.URL.RequestURI(), "127.0.0.1:1"
	inner.Proto, inner.ProtoMajor, inner.ProtoMinor = "HTTP/2.0", 2, 0
	reader, writer := io.Pipe()
	response := &responseWriter{
		request: req, header: http.Header{}, writer: writer,
		body: &responseBody{PipeReader: reader, cancel: cancel}, started: make(chan *http.Response, 1),
	}
	go t.serve(response, inner, cancel) // until the handler returns
	select {
	case started := <-response.started:
		return started, nil
	case <-req.Context().Done():
		cancel()
		return nil, context.Cause(req.Context())
	}
}

// serve runs the handler. As in net/http, a panic ends the response only.
func (t *transport) serve(w *responseWriter, r *http.Request, cancel func()) {
	defer cancel()
	defer w.endWith(w.request.Context())()
	defer func() {
		if reason := recover(); reason != nil {
			_ = w.writer.CloseWithError(fmt.Errorf("the handler ended: %v", reason))
		}
		w.WriteHeader(http.StatusOK)
		_ = w.writer.Close()
	}()
	t.handler.ServeHTTP(w, r)
}

// responseWriter passes what a handler writes to the reader of the response.
type responseWriter struct {
	request *http.Request
	header  http.Header
	writer  *io.PipeWriter
	body    io.ReadCloser
	once    sync.Once
	started chan *http.Response
}

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *responseWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.started <- &http.Response{
			StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/2.0", ProtoMajor: 2,
			Header: w.header.Clone(), Body: w.body, ContentLength: -1, Request: w.request,
		}
	})
}

// Write implements http.ResponseWriter.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.writer.Write(p)
}

// Flush implements http.Flusher. Writes are not buffered.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// endWith ends the response when ctx ends, as the end of a connection does: a
// write would wait for a reader that has gone.
func (w *responseWriter) endWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = w.writer.CloseWithError(context.Cause(ctx)) })
}

// CloseNotify implements http.CloseNotifier, which the handlers of watches and
// filters of upstream require.
func (w *responseWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(w.request.Context(), func() { closed <- true })
	return closed
}

// responseBody ends the request when it is closed.
type responseBody struct {
	*io.PipeReader

	cancel func()
}

// Close implements io.Closer.
func (b *responseBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
