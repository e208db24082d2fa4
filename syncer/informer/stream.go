package informer

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/internal/watchstream"
)

// ErrNoStream reports that an apiserver does not serve streams, or not those
// kinds.
var ErrNoStream = errors.New("the apiserver serves no stream of changes")

// Source is an apiserver that may serve the changes of many kinds in one
// stream.
type Source struct {
	// KindOf returns the kind of an example, as it is requested in a stream; ok
	// is false for one that needs a watch of its own.
	KindOf func(example runtime.Object) (kind watchstream.Kind, ok bool)
	// Open opens a stream until ctx is done. It returns ErrNoStream if there is
	// none.
	Open func(ctx context.Context, kinds []watchstream.Kind) (io.ReadCloser, error)
}

const (
	// gathering is how long a stream waits for more informers to start, so that
	// those that start together share it from the beginning.
	gathering = 10 * time.Millisecond
	// A stream that failed is opened again after reopenFirst, and the delay
	// doubles each time, up to reopenMost.
	reopenFirst, reopenMost = 500 * time.Millisecond, 30 * time.Second
)

// stream feeds the informers of a group from one response, in one goroutine. If
// the apiserver serves no streams, each informer has a watch of its own.
type stream struct {
	group  *Group
	source Source

	mu sync.Mutex
	// members are the informers that the stream feeds.
	members []*streamed
	running bool
	// none is set if the apiserver serves no stream.
	none bool
	// joined ends the response that is being read, because of a new member.
	joined context.CancelFunc
}

// serves reports whether the stream may feed an informer, as far as is known.
func (s *stream) serves(example runtime.Object) bool {
	_, ok := s.kindOf(example)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && !s.none
}

// kindOf returns the kind of an example; ok is false for one that needs a watch
// of its own.
func (s *stream) kindOf(example runtime.Object) (kind watchstream.Kind, ok bool) {
	kind, ok = s.source.KindOf(example)
	return kind, ok && canDecode(example)
}

// join feeds an informer from the stream. It reports false if the informer
// needs a watch of its own.
func (s *stream) join(i *Informer, logger klog.Logger) bool {
	kind, ok := s.kindOf(i.example)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.none {
		return false
	}
	s.members = append(s.members, &streamed{store: &store{i}, kind: kind})
	if s.joined != nil {
		s.joined()
	}
	if !s.running {
		s.running = true
		s.group.running.Go(func() { s.run(klog.NewContext(s.group.ctx, logger)) })
	}
	s.group.running.Go(func() { i.mutations.Run(s.group.ctx.Done()) }) // returns at once unless mutations are detected
	return true
}

// run reads streams until ctx is done.
func (s *stream) run(ctx context.Context) {
	defer s.stop()
	backoff := newBackoff()
	for pause.For(ctx, gathering) {
		began := time.Now()
		err := s.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrNoStream):
			s.watchEach(ctx)
			return
		case errors.Is(err, errJoined):
			continue
		}
		if time.Since(began) > reopenMost {
			backoff = newBackoff()
		}
		klog.FromContext(ctx).V(1).Info("The stream of a tenant's changes ended; it is opened again", "cause", err)
		if !pause.For(ctx, backoff.Step()) {
			return
		}
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: reopenFirst, Factor: 2, Jitter: 0.2, Steps: 16, Cap: reopenMost}
}

// errJoined ends a response because it does not have all members.
var errJoined = errors.New("another informer has started")

// read reads one stream of all members.
func (s *stream) read(ctx context.Context) error {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	members := slices.Clone(s.members)
	s.joined = func() { cancel(errJoined) }
	s.mu.Unlock()
	kinds := make([]watchstream.Kind, len(members))
	for n, m := range members {
		m.begin()
		kinds[n] = m.kind
	}
	body, err := s.source.Open(reading, kinds)
	if err == nil {
		err = readFrames(body, members)
		_ = body.Close()
	}
	if context.Cause(reading) == errJoined { //nolint:errorlint // it is never wrapped
		return errJoined
	}
	return err
}

// readFrames passes frames to the informers until the response ends.
func readFrames(body io.Reader, members []*streamed) error {
	reader := watchstream.NewReader(body)
	for {
		frame, err := reader.Next()
		if err != nil {
			return err
		}
		if frame.Kind >= len(members) {
			return errFrame
		}
		if err := members[frame.Kind].receive(frame); err != nil {
			return err
		}
	}
}

// watchEach lets each member watch for itself.
func (s *stream) watchEach(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.none = true
	for _, m := range s.members {
		s.group.running.Go(func() { m.reflect(ctx) })
	}
	s.members = nil
}

// stop makes the members reject new handlers.
func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		m.stop()
	}
}
