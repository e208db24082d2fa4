package inflight

import (
	"context"
	"net/http"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

const (
	// pageBytes is about how much a watch reads of etcd at a time, to send the
	// objects that exist. Etcd has a page in memory while it is read, and the
	// apiserver until its client has taken it.
	pageBytes = 8 << 20
	// largestPage is the number of records at most.
	largestPage = 1000
	// readers is how many watches of a tenant read a page at a time.
	readers = 2
)

// beginning is the part of a watch in which it sends the objects that exist. It
// ends when all of them have been read, and the response has no more to send.
type beginning struct {
	grant *grant

	mu sync.Mutex // guards all below
	// records is the number that was read, listed whether these are all, and over
	// whether they are sent.
	records      int
	listed, over bool
}

type beginningKey struct{}

// page waits until the watch may read, and returns how many records it may read.
func (b *beginning) page(ctx context.Context) (records int64, end func(), err error) {
	t := b.grant.tenant
	select {
	case t.reading <- struct{}{}:
	case <-ctx.Done():
		return 0, nil, context.Cause(ctx)
	}
	return min(max(pageBytes/max(t.stored().Largest, 1), 1), largestPage), func() { <-t.reading }, nil
}

// read counts records.
func (b *beginning) read(records int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records += records
}

// list ends the reading. Without records, nothing is to be sent.
func (b *beginning) list() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed = true
	if b.records == 0 {
		b.lockedEnd()
	}
}

// drained is called when the response has no more to send at the moment.
func (b *beginning) drained() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listed {
		b.lockedEnd()
	}
}

func (b *beginning) lockedEnd() {
	if !b.over {
		b.over = true
		b.grant.releaseMemory()
	}
}

func (b *beginning) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// draining is the response of a watch, which is flushed when there is no more to
// send.
type draining struct {
	http.ResponseWriter

	beginning *beginning
	begun     bool
}

func (b *beginning) wrap(w http.ResponseWriter) http.ResponseWriter {
	return responsewriter.WrapForHTTP1Or2(&draining{ResponseWriter: w, beginning: b})
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (d *draining) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// Flush implements http.Flusher. The first one is that of the headers.
func (d *draining) Flush() {
	if flusher, ok := d.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
	if d.begun {
		d.beginning.drained()
	}
	d.begun = true
}

// Bound bounds what the watches of a client of etcd read to send the objects that
// exist: in pages, of which etcd has few in memory. An apiserver without a watch
// cache reads them for each watch, and all at once. It also bounds the changes that
// clients of watches have not read.
func Bound(client *clientv3.Client) {
	client.KV = pagedKV{client.KV}
	client.Watcher = watcher{client.Watcher}
}

type pagedKV struct{ clientv3.KV }

// Get implements clientv3.KV. An apiserver reads the next page by itself if there
// are more records.
func (k pagedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	b, begins := ctx.Value(beginningKey{}).(*beginning)
	if !begins {
		return k.KV.Get(ctx, key, opts...)
	}
	limit, end, err := b.page(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	response, err := k.KV.Get(ctx, key, append(slices.Clip(opts), clientv3.WithLimit(limit))...)
	if err == nil {
		b.read(len(response.Kvs))
	}
	return response, err
}

type watcher struct{ clientv3.Watcher }

// Watch implements clientv3.Watcher. It is called when all records are read.
func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if b, begins := ctx.Value(beginningKey{}).(*beginning); begins {
		b.list()
	}
	changes := w.Watcher.Watch(ctx, key, opts...)
	if f, follows := ctx.Value(followingKey{}).(*following); follows {
		return f.follow(ctx, changes)
	}
	return changes
}
