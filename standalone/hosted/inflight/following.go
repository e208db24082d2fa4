package inflight

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

const (
	// unreadWindow is how many bytes of changes the apiserver gets before its client
	// has read them. It decodes them, and keeps up to 200.
	unreadWindow = 1 << 20
	// unreadFree is how many a watch may keep without having them counted, and
	// unreadStep the step in which they are.
	unreadFree, unreadStep = 256 << 10, 1 << 20
	// mostUnread is how many a watch may keep.
	mostUnread = 16 << 20
	// lookInterval is the time after which the apiserver has passed over the changes
	// that it got if it does not write, and stuckInterval that of the next check if it
	// does.
	lookInterval, stuckInterval = 50 * time.Millisecond, time.Second
)

// following is the part of a watch in which it sends changes. The client of etcd
// and the apiserver keep what the client of the watch has not read, without a
// limit. Here it counts, and a watch that keeps too much ends, as one of a watch
// cache does. Clients watch again from where they were.
type following struct {
	grant *grant
	// end ends the watch.
	end func()

	// writing is the number of writes in progress, and read receives when the client
	// has taken all that the apiserver had.
	writing atomic.Int32
	read    chan struct{}
}

type followingKey struct{}

func newFollowing(g *grant, end func()) *following {
	return &following{grant: g, end: end, read: make(chan struct{}, 1)}
}

// followed is the response of a watch. It is flushed when there is no more to send.
type followed struct {
	http.ResponseWriter

	following *following
}

func (f *following) wrap(w http.ResponseWriter) http.ResponseWriter {
	return responsewriter.WrapForHTTP1Or2(&followed{ResponseWriter: w, following: f})
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (f *followed) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// Write implements http.ResponseWriter.
func (f *followed) Write(data []byte) (int, error) {
	f.following.writing.Add(1)
	defer f.following.writing.Add(-1)
	return f.ResponseWriter.Write(data)
}

// Flush implements http.Flusher.
func (f *followed) Flush() {
	f.following.writing.Add(1)
	defer f.following.writing.Add(-1)
	if flusher, ok := f.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
	select {
	case f.following.read <- struct{}{}:
	default: // it was not seen yet
	}
}

// follow passes changes on, until etcd ends them or ctx ends.
func (f *following) follow(ctx context.Context, changes clientv3.WatchChan) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	b := &backlog{grant: f.grant}
	go func() { // ends with the watch
		defer close(out)
		defer f.grant.forget()
		f.pass(ctx, changes, out, b)
	}()
	return out
}

func (f *following) pass(ctx context.Context, changes clientv3.WatchChan, out chan<- clientv3.WatchResponse, b *backlog) {
	look := time.NewTimer(lookInterval)
	defer look.Stop()
	for changes != nil || len(b.queue) > 0 {
		next, to, passed := b.next(out)
		select {
		case <-ctx.Done():
			return
		case response, ok := <-changes:
			if !ok {
				changes = nil
			} else if !b.add(response) {
				f.end()
				return
			}
		case to <- next:
			passed()
			look.Reset(lookInterval)
		case <-f.read:
			b.read()
		case <-look.C:
			if f.writing.Load() == 0 { // none of them was for the client
				b.read()
			} else {
				look.Reset(stuckInterval)
			}
		}
	}
}

// backlog are the changes that a client has not read. It is used by one goroutine.
type backlog struct {
	grant *grant
	// queue are those that the apiserver has not got.
	queue []clientv3.WatchResponse
	// queued and passed are the bytes of these and of those that it has got.
	queued, passed int64
}

// add adds changes. It reports false if they are too many.
func (b *backlog) add(response clientv3.WatchResponse) bool {
	b.queue = append(b.queue, response)
	b.queued += sizeOf(response)
	unread := b.queued + b.passed
	return unread <= mostUnread && b.grant.keep(unread-unreadFree)
}

// next returns the next changes, where to pass them, and what to call then. There
// is nowhere to pass them to while the apiserver has enough.
func (b *backlog) next(out chan<- clientv3.WatchResponse) (next clientv3.WatchResponse, to chan<- clientv3.WatchResponse, passed func()) {
	if len(b.queue) == 0 {
		return next, nil, nil
	}
	next = b.queue[0]
	size := sizeOf(next)
	if b.passed > 0 && b.passed+size > unreadWindow {
		return next, nil, nil
	}
	return next, out, func() {
		b.queue[0] = clientv3.WatchResponse{}
		b.queue = b.queue[1:]
		b.queued -= size
		b.passed += size
	}
}

// read forgets what the apiserver has got.
func (b *backlog) read() {
	b.passed = 0
	if b.queued == 0 {
		b.grant.forget()
	}
}

// sizeOf returns the bytes of what changes contain.
func sizeOf(response clientv3.WatchResponse) (bytes int64) {
	for _, event := range response.Events {
		if event.Kv != nil {
			bytes += int64(len(event.Kv.Value))
		}
		if event.PrevKv != nil {
			bytes += int64(len(event.PrevKv.Value))
		}
	}
	return bytes
}
