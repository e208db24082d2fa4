package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
)

// fakeHost serves streams of ConfigMaps that a test writes.
type fakeHost struct {
	mu sync.Mutex
	// requests are the kinds of each stream that was opened.
	requests [][]watchstream.Kind
	current  *io.PipeWriter
	err      error
}

func (h *fakeHost) source() *Source {
	return &Source{KindOf: func(example runtime.Object) (watchstream.Kind, bool) {
		_, ok := example.(*corev1.ConfigMap)
		return watchstream.Kind{Resource: corev1.SchemeGroupVersion.WithResource("configmaps")}, ok
	}, Open: h.open}
}

func (h *fakeHost) open(ctx context.Context, kinds []watchstream.Kind) (io.ReadCloser, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, slices.Clone(kinds))
	if h.err != nil {
		return nil, h.err
	}
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(ctx.Err()) })
	h.current = writer
	return reader, nil
}

// send sends frames, and waits until they are read.
func (h *fakeHost) send(t *testing.T, frames ...watchstream.Frame) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	to := h.current
	h.mu.Unlock()
	for _, frame := range frames {
		if _, err := to.Write(frame.Append(nil)); err != nil {
			t.Logf("the stream has ended: %v", err)
		}
	}
	synctest.Wait()
}

// opened returns the Since of the first kind of each stream.
func (h *fakeHost) opened() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := make([]int64, 0, len(h.requests))
	for _, kinds := range h.requests {
		since = append(since, kinds[0].Since)
	}
	return since
}

// at returns a ConfigMap at a revision, as a frame.
func at(op watchstream.Op, revision int64, name, value string) watchstream.Frame {
	c := identified(configMap(name, value))
	c.ResourceVersion = fmt.Sprint(revision)
	c.ManagedFields = nil
	data, err := c.Marshal()
	if err != nil {
		panic(err)
	}
	return watchstream.Frame{Op: op, Revision: revision, Name: c.Namespace + "/" + c.Name, Object: data}
}

func only(op watchstream.Op, revision int64, name string) watchstream.Frame {
	frame := watchstream.Frame{Op: op, Revision: revision}
	if name != "" {
		frame.Name = "shop-" + name[:1] + "/" + name
	}
	return frame
}

// streaming starts an informer of ConfigMaps that a fake host feeds.
func streaming(t *testing.T, ctx context.Context, h *fakeHost, change ...func(*GroupOptions)) (*Group, *Informer, *journal) { //nolint:revive // as in the other tests
	t.Helper()
	options := inNamespaces()
	options.Source = h.source()
	for _, f := range change {
		f(&options)
	}
	group := NewGroup(ctx, options)
	i := group.New(&cache.ListWatch{}, &corev1.ConfigMap{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}).(*Informer)
	j := newJournal()
	join(t, i, j)
	i.RunWithContext(ctx)
	time.Sleep(gathering)
	synctest.Wait()
	return group, i, j
}

// inStream runs a test in a bubble, whose goroutines end with the context.
func inStream(t *testing.T, test func(t *testing.T, ctx context.Context, h *fakeHost)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		test(t, ctx, &fakeHost{})
	})
}

func wantEntries(t *testing.T, j *journal, want ...string) {
	t.Helper()
	if got := j.taken(); !slices.Equal(got, want) {
		t.Errorf("got events %q, want %q", got, want)
	}
}

func TestAStreamFeedsAnInformer(t *testing.T) {
	inStream(t, func(t *testing.T, ctx context.Context, h *fakeHost) {
		_, i, j := streaming(t, ctx, h)
		h.send(t, only(watchstream.Begin, 0, ""), at(watchstream.Put, 3, "a1", "x"))
		if i.HasSynced() || len(stored(i)) > 0 {
			t.Error("the informer has synced in the middle of a list")
		}
		h.send(t, only(watchstream.Listed, 5, ""))
		if !i.HasSynced() || i.LastSyncResourceVersion() != "5" {
			t.Errorf("the informer has not synced, or is at %s", i.LastSyncResourceVersion())
		}
		wantEntries(t, j, "initial add a1=x")
		h.send(t, at(watchstream.Put, 6, "a1", "y"), at(watchstream.Put, 7, "b1", "x"))
		wantEntries(t, j, "update a1=x to a1=y", "add b1=x")
		h.send(t, at(watchstream.Gone, 8, "a1", "last"), only(watchstream.Gone, 9, "b1"), only(watchstream.Gone, 10, "never"))
		wantEntries(t, j, "delete a1=last", "delete b1=x")
		if left := stored(i); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	})
}

func TestAStreamContinues(t *testing.T) {
	inStream(t, func(t *testing.T, ctx context.Context, h *fakeHost) {
		_, i, j := streaming(t, ctx, h)
		h.send(t, only(watchstream.Begin, 0, ""), at(watchstream.Put, 1, "a1", "x"), at(watchstream.Put, 2, "a2", "x"),
			at(watchstream.Put, 3, "a3", "x"), only(watchstream.Listed, 5, ""))
		j.taken()
		_ = h.current.Close() // the host restarts
		time.Sleep(reopenMost)
		h.send(t, only(watchstream.Begin, 0, ""), only(watchstream.Same, 1, "a1"), at(watchstream.Put, 7, "a3", "y"), only(watchstream.Listed, 9, ""))
		wantEntries(t, j, "missed delete shop-a/a2 a2=x", "update a3=x to a3=y")
		if got := h.opened(); !slices.Equal(got, []int64{0, 5}) || i.LastSyncResourceVersion() != "9" {
			t.Errorf("the streams began at %v, and the informer is at %s", got, i.LastSyncResourceVersion())
		}
		// A list that breaks off changes nothing.
		h.send(t, only(watchstream.Begin, 0, ""))
		_ = h.current.Close()
		time.Sleep(reopenMost)
		synctest.Wait()
		wantEntries(t, j)
	})
}

// TestInconsistentStreams: a stream that does not fit the index is read again,
// from the beginning.
func TestInconsistentStreams(t *testing.T) {
	for name, frames := range map[string][]watchstream.Frame{
		"another revision":           {only(watchstream.Begin, 0, ""), only(watchstream.Same, 4, "a1")},
		"an unknown object":          {only(watchstream.Begin, 0, ""), only(watchstream.Same, 1, "a9")},
		"a deletion in a list":       {only(watchstream.Begin, 0, ""), only(watchstream.Gone, 7, "a1")},
		"the same without a list":    {only(watchstream.Same, 1, "a1")},
		"the end of no list":         {only(watchstream.Listed, 1, "")},
		"another name":               {{Op: watchstream.Put, Revision: 7, Name: "shop-a/a1", Object: at(watchstream.Put, 7, "b1", "x").Object}},
		"another resource version":   {{Op: watchstream.Put, Revision: 7, Name: "shop-a/a1", Object: at(watchstream.Put, 6, "a1", "x").Object}},
		"damaged":                    {{Op: watchstream.Put, Revision: 7, Name: "shop-a/a1", Object: []byte("x")}},
		"another kind":               {{Op: watchstream.Begin, Kind: 1}},
		"a deletion of another kind": {{Op: watchstream.Gone, Kind: 1, Revision: 7, Name: "shop-a/a1"}},
		"a deletion with another object's last state": {{
			Op: watchstream.Gone, Revision: 7, Name: "shop-a/a1", Object: at(watchstream.Gone, 7, "b1", "x").Object,
		}},
		"a deletion with a state of another revision": {{
			Op: watchstream.Gone, Revision: 7, Name: "shop-a/a1", Object: at(watchstream.Gone, 9, "a1", "x").Object,
		}},
		"a deletion with a damaged state": {{Op: watchstream.Gone, Revision: 7, Name: "shop-a/a1", Object: []byte("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			inStream(t, func(t *testing.T, ctx context.Context, h *fakeHost) {
				_, i, j := streaming(t, ctx, h)
				h.send(t, only(watchstream.Begin, 0, ""), at(watchstream.Put, 1, "a1", "x"), only(watchstream.Listed, 5, ""))
				j.taken()
				h.send(t, frames...)
				wantEntries(t, j)
				time.Sleep(reopenMost)
				synctest.Wait()
				if got := h.opened(); len(got) < 2 {
					t.Errorf("the streams began at %v", got)
				}
				if got := stored(i); len(got) != 1 {
					t.Errorf("the index has %v", got)
				}
			})
		})
	}
}

// TestAStreamIsChecked: objects that no apiserver returns are dropped, and the
// memory is bounded, as with watches.
func TestAStreamIsChecked(t *testing.T) {
	inStream(t, func(t *testing.T, ctx context.Context, h *fakeHost) {
		rejected, exceeded := &rejections{}, make(chan error, 1)
		_, i, _ := streaming(t, ctx, h, func(o *GroupOptions) {
			o.Rejected, o.Memory, o.Exceeded = rejected.add, 2000, func(err error) { exceeded <- err }
		})
		h.send(t, only(watchstream.Begin, 0, ""), at(watchstream.Put, 1, "a1", "x"), at(watchstream.Put, 1, "a1", "y"), only(watchstream.Listed, 5, ""))
		h.send(t, at(watchstream.Put, 6, "a2", string(make([]byte, 4000))))
		bad := identified(configMap("a3", "x"))
		bad.ResourceVersion, bad.UID = "7", "a\nb"
		data, err := bad.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		h.send(t, watchstream.Frame{Op: watchstream.Put, Revision: 7, Name: "shop-a/a3", Object: data})
		if got := rejected.all(); !slices.Equal(got, []string{ReasonDuplicate, ReasonMemory, ReasonIdentity}) {
			t.Errorf("rejected for %v", got)
		}
		if len(exceeded) != 1 || len(stored(i)) != 1 {
			t.Errorf("the index has %v", stored(i))
		}
	})
}

// TestInformersShareAStream: those that start together have one, and a later
// one joins it.
func TestInformersShareAStream(t *testing.T) {
	inStream(t, func(t *testing.T, ctx context.Context, h *fakeHost) {
		group, _, j := streaming(t, ctx, h)
		h.send(t, only(watchstream.Begin, 0, ""), at(watchstream.Put, 1, "a1", "x"), only(watchstream.Listed, 5, ""))
		j.taken()
		later := group.New(&cache.ListWatch{}, &corev1.ConfigMap{}, 0, cache.Indexers{}).(*Informer)
		later.RunWithContext(ctx)
		time.Sleep(gathering)
		h.send(t, only(watchstream.Begin, 0, ""), only(watchstream.Same, 1, "a1"), only(watchstream.Listed, 6, ""))
		second := watchstream.Frame{Op: watchstream.Begin, Kind: 1}
		end := watchstream.Frame{Op: watchstream.Listed, Kind: 1, Revision: 6}
		h.send(t, second, end)
		if !later.HasSynced() || len(h.requests) != 2 || len(h.requests[1]) != 2 {
			t.Errorf("the later informer has not synced, with the streams %v", h.requests)
		}
		wantEntries(t, j) // it gets nothing again
	})
}

// TestNoStream: without streams, each informer watches for itself.
func TestNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetesting.NewFakeControllerSource()
		source.Add(identified(configMap("a1", "x")))
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
			source.Shutdown()
		}()
		h := &fakeHost{err: fmt.Errorf("open: %w", ErrNoStream)}
		options := inNamespaces()
		options.Source = h.source()
		group := NewGroup(ctx, options)
		for range 2 { // the second does not ask again
			i := group.New(source, &corev1.ConfigMap{}, 0, cache.Indexers{})
			i.RunWithContext(ctx)
			time.Sleep(time.Second)
			synctest.Wait()
			if !i.HasSynced() || len(stored(i)) != 1 {
				t.Errorf("the informer has %v", stored(i))
			}
		}
		if got := len(h.opened()); got != 1 {
			t.Errorf("it asked for a stream %d times", got)
		}
	})
}

// TestAHostThatFails: the delay between requests grows.
func TestAHostThatFails(t *testing.T) {
	inStream(t, func(t *testing.T, ctx context.Context, h *fakeHost) {
		h.err = errors.New("not now")
		_, i, _ := streaming(t, ctx, h)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := len(h.opened()); got < 10 || got > 60 {
			t.Errorf("it asked %d times in ten minutes", got)
		}
		h.mu.Lock()
		h.err = nil
		h.mu.Unlock()
		time.Sleep(2 * reopenMost)
		h.send(t, only(watchstream.Begin, 0, ""), only(watchstream.Listed, 5, ""))
		if !i.HasSynced() {
			t.Error("the informer has not synced")
		}
	})
}
