package stream

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

const (
	// sendSize is the number of bytes that are sent at once, keptSize the
	// maximum size of a buffer that a stream keeps while it is idle.
	sendSize, keptSize = 64 << 10, 4 << 10
	// writeSize is the maximum size of a write, and so of a frame of HTTP/2 and
	// of a record of TLS: a client keeps buffers of the size of the largest ones
	// that it received, as long as the connection is open.
	writeSize = 4 << 10
	// sendTimeout is the time limit for sending. Changes that a slow client has
	// not read wait in its subscriptions, of each object the latest.
	sendTimeout = 30 * time.Second
)

// stream is one response. Its methods are called by the goroutine of the
// request.
type stream struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	of     Endpoint

	to      http.ResponseWriter
	control *http.ResponseController
	buffer  []byte

	kinds []*watched
	// woken has an element if a kind has changes.
	woken chan struct{}
}

func newStream(ctx context.Context, cancel context.CancelCauseFunc, of Endpoint, to http.ResponseWriter) *stream {
	return &stream{
		ctx: ctx, cancel: cancel, of: of, to: to, control: http.NewResponseController(to), woken: make(chan struct{}, 1),
	}
}

// subscribe subscribes to the changes of kinds.
func (s *stream) subscribe(kinds []watchstream.Kind) error {
	for n, kind := range kinds {
		stored, err := views.KindOf(kind.Resource, kind.Metadata)
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind.Resource, err)
		}
		w := &watched{stream: s, number: n, kind: kind, stored: stored}
		if kind.Selector != nil {
			w.selected = map[string]struct{}{}
		}
		w.changed.Store(true) // the list
		w.subscription, err = s.of.Feed.Subscribe(s.of.Tenant, stored.Resource(), w.wake)
		if err != nil {
			return err
		}
		s.kinds = append(s.kinds, w)
	}
	return nil
}

// close ends the subscriptions.
func (s *stream) close() {
	for _, w := range s.kinds {
		w.subscription.Close()
	}
}

// run sends all objects and then their changes, until the context is done or
// sending fails. It calls listed when all objects have been sent.
func (s *stream) run(listed func()) error {
	for {
		for _, w := range s.kinds {
			if !w.changed.Swap(false) {
				continue
			}
			if err := w.subscription.Receive(s.ctx, w); err != nil {
				return s.cause(err)
			}
			if s.ctx.Err() != nil {
				return context.Cause(s.ctx)
			}
		}
		s.send()
		if listed != nil {
			listed()
			listed = nil
		}
		select {
		case <-s.woken:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// cause returns why the context is done, or the error.
func (s *stream) cause(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// add adds a frame to what is sent next.
func (s *stream) add(frame watchstream.Frame) {
	s.buffer = frame.Append(s.buffer)
	if len(s.buffer) >= sendSize {
		s.send()
	}
}

// send sends what was added. If that fails, the stream ends.
func (s *stream) send() {
	if s.ctx.Err() != nil || len(s.buffer) == 0 {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(sendTimeout)) // a server without deadlines has a timeout of its own
	if err := s.write(); err != nil {
		s.cancel(fmt.Errorf("send changes: %w", err))
		return
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // an idle stream has none
	if s.buffer = s.buffer[:0]; cap(s.buffer) > keptSize {
		s.buffer = nil
	}
}

// write writes what was added.
func (s *stream) write() error {
	for chunk := range slices.Chunk(s.buffer, writeSize) {
		if _, err := s.to.Write(chunk); err != nil {
			return err
		}
	}
	return s.control.Flush()
}
