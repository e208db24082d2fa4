package inflight

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/util/flowcontrol"
)

// etcd has records, and counts reads, and how many are in progress.
type etcd struct {
	clientv3.KV
	clientv3.Watcher

	records, watched int

	mu                   sync.Mutex
	reads, reading, most int
}

// Get takes a moment.
func (e *etcd) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	e.count(1)
	time.Sleep(time.Millisecond)
	e.count(-1)
	return &clientv3.GetResponse{Kvs: make([]*mvccpb.KeyValue, e.records)}, nil
}

func (e *etcd) count(by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading += by
	e.reads += max(by, 0)
	e.most = max(e.most, e.reading)
}

// Watch counts watches.
func (e *etcd) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	e.watched++
	return nil
}

// begin begins watches as an apiserver without a watch cache does, which signals
// the end of the beginning at once.
func begin(client *clientv3.Client, w http.ResponseWriter, r *http.Request) {
	flowcontrol.WatchInitialized(r.Context())
	w.(http.Flusher).Flush()
	_, _ = client.Get(r.Context(), "/pods/")
	client.Watch(r.Context(), "/pods/")
}

// TestTheBeginningOfAWatchWithoutACache counts until what exists is sent.
func TestTheBeginningOfAWatchWithoutACache(t *testing.T) {
	for name, tt := range map[string]struct {
		records int
		sends   bool
		after   int64
	}{
		"no object":                       {0, false, 0},
		"objects that are sent":           {3, true, 0},
		"objects that the client ignores": {3, false, largeBudget},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tenant := newHost(math.MaxInt64).Add("a", Config{Stored: func() Stored { return Stored{Bytes: 1 << 30, Largest: 1 << 20} }})
				store := &etcd{records: tt.records}
				client := &clientv3.Client{KV: store, Watcher: store}
				Bound(client)
				filter := filterOf(always(tenant))
				filter.Cached = false
				began := time.Now()
				handler := filter.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					begin(client, w, r)
					if tt.sends {
						w.(http.Flusher).Flush()
					}
					if got := tenant.Usage(); got.Bytes != tt.after || got.Running[Watch] != 1 {
						t.Errorf("it has %+v, want %d bytes", got, tt.after)
					}
					if tt.after > 0 {
						<-r.Context().Done()
					} else {
						time.Sleep(2 * readPatience)
						if r.Context().Err() != nil {
							t.Error("it was ended")
						}
					}
				}))
				handler.ServeHTTP(flushable{httptest.NewRecorder()},
					httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=1", http.NoBody))
				if lasted := time.Since(began); tt.after > 0 && lasted > readPatience+time.Second {
					t.Errorf("a client that does not read it kept its memory for %s", lasted)
				}
				if got := tenant.Usage(); got.Bytes != 0 || got.Running[Watch] != 0 || store.watched != 1 {
					t.Errorf("after its end it has %+v; %d watches", got, store.watched)
				}
			})
		})
	}
}

// flushable is a response as that of a server.
type flushable struct{ *httptest.ResponseRecorder }

func (flushable) CloseNotify() <-chan bool { return nil }

// TestPages: few watches of a tenant read at a time, and little.
func TestPages(t *testing.T) {
	for largest, want := range map[int64]int64{0: largestPage, 1 << 10: largestPage, 1 << 20: 8, 100 << 20: 1} {
		synctest.Test(t, func(t *testing.T) {
			tenant := newHost(math.MaxInt64).Add("a", Config{Stored: func() Stored { return Stored{Largest: largest} }})
			b := &beginning{grant: &grant{tenant: tenant}}
			limit, end, err := b.page(t.Context())
			if err != nil || limit != want {
				t.Errorf("objects of up to %d bytes: a page has %d (%v), want %d", largest, limit, err, want)
			}
			end()

			store := &etcd{}
			client := &clientv3.Client{KV: store, Watcher: store}
			Bound(client)
			for range 10 {
				go func() { _, _ = client.Get(context.WithValue(t.Context(), beginningKey{}, b), "/pods/") }()
			}
			synctest.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
			if store.most != readers || store.reads != 10 {
				t.Errorf("%d reads at a time, %d in all", store.most, store.reads)
			}
			if _, err := client.Get(t.Context(), "/pods/"); err != nil { // no watch
				t.Error(err)
			}
		})
	}
}
