// Package inprocess sends HTTP requests to handlers in the same process, without
// a connection. Watches work.
package inprocess

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Host is the host in the URLs of requests inside this process. It is never
// resolved.
const Host = "in-process.internal"

// Transport sends requests to a handler.
type Transport struct {
	Handler http.Handler
	// Context returns the context that the handler gets; nil for that of the
	// request.
	Context func(context.Context) context.Context
}

// Config returns a client configuration for a handler.
func Config(transport *Transport) *rest.Config {
	return &rest.Config{Host: "https://" + Host, Transport: transport, QPS: -1}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	if t.Context != nil {
		ctx = t.Context(ctx)
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
func (t *Transport) serve(w *responseWriter, r *http.Request, cancel func()) {
	defer cancel()
	defer w.endWith(w.request.Context())()
	defer func() {
		if reason := recover(); reason != nil {
			_ = w.writer.CloseWithError(fmt.Errorf("the handler ended: %v", reason))
		}
		w.WriteHeader(http.StatusOK)
		_ = w.writer.Close()
	}()
	t.Handler.ServeHTTP(w, r)
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
