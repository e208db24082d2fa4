package local

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// jsonType is the content type of forged and rewritten responses.
const jsonType = "application/json"

// Status responds with a status code and a body.
func Status(code int, body string) Answer {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Redirect redirects to the same path and query of another server.
func Redirect(to string) Answer {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}
}

// Delay proxies the request after a delay.
func Delay(by time.Duration) Answer {
	return func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		select {
		case <-time.After(by):
			behind.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// NoStream rejects streaming lists (watches with sendInitialEvents), as
// apiservers before Kubernetes 1.32 do, so that clients fall back to a list. It
// delegates all other requests.
func NoStream(list Answer) Answer {
	return func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "":
			Status(http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)(w, r, behind)
		case isWatch(r):
			behind.ServeHTTP(w, r)
		default:
			list(w, r, behind)
		}
	}
}

// Rewrite changes the JSON of the real apiserver's response: an object, a list,
// or each event of a watch.
func Rewrite(change func(map[string]any)) Answer {
	return func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		r = asJSON(r)
		if isWatch(r) {
			behind.ServeHTTP(&eventWriter{ResponseWriter: w, change: change}, r)
			return
		}
		answer := httptest.NewRecorder()
		behind.ServeHTTP(answer, r)
		body, err := changed(answer.Body.Bytes(), change)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body)
	}
}

// RewriteItems changes each object in the real apiserver's response: the items
// of a list, the objects of a watch, or a single object. Bookmarks are not
// changed.
func RewriteItems(change func(map[string]any)) Answer {
	return Rewrite(func(answer map[string]any) {
		if items, ok := answer["items"].([]any); ok {
			for _, item := range items {
				change(item.(map[string]any))
			}
			return
		}
		if object, ok := answer["object"].(map[string]any); ok {
			if answer["type"] != "BOOKMARK" && answer["type"] != "ERROR" {
				change(object)
			}
			return
		}
		change(answer)
	})
}

// asJSON returns the request with plain JSON as the only accepted content type.
func asJSON(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", jsonType)
	r.Header.Set("Accept-Encoding", "identity")
	return r
}

func changed(data []byte, change func(map[string]any)) ([]byte, error) {
	object := map[string]any{}
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	change(object)
	return json.Marshal(object)
}

// Inject adds events to the real apiserver's watches, and proxies all other
// requests. For each watch, also is called when the response has begun; it may
// send events until its context ends.
func Inject(also func(ctx context.Context, send func(kind watch.EventType, object any) error)) Answer {
	return func(w http.ResponseWriter, r *http.Request, behind http.Handler) {
		r = asJSON(r)
		if !isWatch(r) {
			behind.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		began := make(chan struct{})
		events := &eventWriter{ResponseWriter: w, change: func(map[string]any) {}, began: began}
		var sending sync.WaitGroup
		defer sending.Wait()
		defer cancel()
		sending.Go(func() {
			select {
			case <-began:
				also(ctx, events.send)
			case <-ctx.Done():
			}
		})
		behind.ServeHTTP(events, r)
	}
}

// eventWriter changes each event of a watch. An event is one line.
type eventWriter struct {
	http.ResponseWriter

	change func(map[string]any)
	part   []byte
	// mu serializes lines. began, if it is set, is closed with the header.
	mu    sync.Mutex
	began chan struct{}
}

// WriteHeader begins the response.
func (w *eventWriter) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ResponseWriter.WriteHeader(code)
	if w.began != nil && code == http.StatusOK {
		close(w.began)
		w.began = nil
	}
}

// send writes an event of its own.
func (w *eventWriter) send(kind watch.EventType, object any) error {
	line, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.ResponseWriter.Write(append(line, '\n')); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Write changes and forwards the events that are complete.
func (w *eventWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, data...)
	for {
		line, rest, whole := bytes.Cut(w.part, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		event, err := changed(line, w.change)
		if err != nil {
			return 0, err
		}
		w.part = bytes.Clone(rest)
		if _, err := w.ResponseWriter.Write(append(event, '\n')); err != nil {
			return 0, err
		}
	}
}

// Flush flushes the writer behind.
func (w *eventWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if flusher, ok := w.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
}

// Unwrap returns the writer behind.
func (w *eventWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Endless responds with a beginning followed by the same part forever, until
// the client disconnects or the number of bytes in most has been sent.
func Endless(code int, beginning, part string, most int64) Answer {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(code)
		repeat(r, w, beginning, part, most)
	}
}

// GzipBomb does the same with a body compressed by three orders of magnitude,
// whether or not the client accepts it.
func GzipBomb(code int, beginning, part string, most int64) Answer {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(code)
		packed := gzip.NewWriter(w)
		repeat(r, packed, beginning, part, most)
		_ = packed.Close() // fails if the client has disconnected
	}
}

// Drip responds one byte at a time.
func Drip(body string, pause time.Duration) Answer {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusOK)
		for i := range len(body) {
			_, err := io.WriteString(w, body[i:i+1])
			if err = errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
				return
			}
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
		}
	}
}

// repeat writes until the client disconnects.
func repeat(r *http.Request, w io.Writer, beginning, part string, most int64) {
	chunk := bytes.Repeat([]byte(part), max(1, 64<<10/max(1, len(part))))
	sent, err := io.WriteString(w, beginning)
	for left := most - int64(sent); err == nil && left > 0 && r.Context().Err() == nil; left -= int64(len(chunk)) {
		_, err = w.Write(chunk)
	}
}
