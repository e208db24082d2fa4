package inflight

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// changing is an etcd whose watches send changes.
type changing struct {
	clientv3.KV

	changes chan clientv3.WatchResponse
}

// Watch implements clientv3.Watcher.
func (c changing) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	return c.changes
}

// Close implements clientv3.Watcher.
func (changing) Close() error { return nil }

// RequestProgress implements clientv3.Watcher.
func (changing) RequestProgress(context.Context) error { return nil }

// change returns a change of an object, with a revision.
func change(revision int64, size int) clientv3.WatchResponse {
	return clientv3.WatchResponse{Events: []*clientv3.Event{{Kv: &mvccpb.KeyValue{ModRevision: revision, Value: make([]byte, size)}}}}
}

// response is that of a watch. Writes wait until the client reads, or for the
// deadline.
type response struct {
	*httptest.ResponseRecorder

	reads    chan struct{} // closed for a client that reads all
	deadline chan struct{}
}

func (r *response) Write(data []byte) (int, error) {
	select {
	case <-r.reads:
		return r.ResponseRecorder.Write(data)
	case <-r.deadline:
		return 0, context.DeadlineExceeded
	}
}

// SetWriteDeadline ends writes at once.
func (r *response) SetWriteDeadline(time.Time) error {
	close(r.deadline)
	return nil
}

// watching is a watch of a tenant.
type watching struct {
	*changing

	tenant   *Tenant
	response *response
	// sent has the revisions that the apiserver has sent; ended is closed when the
	// watch has ended.
	sent  atomic.Int64
	ended chan struct{}
}

// startWatch starts a watch of an apiserver that keeps 200 changes and sends those
// that a function selects.
func startWatch(t *testing.T, tenant *Tenant, selects func(revision int64) bool) *watching {
	t.Helper()
	const keeps = 200
	w := &watching{
		changing: &changing{changes: make(chan clientv3.WatchResponse)}, tenant: tenant, ended: make(chan struct{}),
		response: &response{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})},
	}
	client := &clientv3.Client{KV: w.changing, Watcher: w.changing}
	Bound(client)
	filter := filterOf(always(tenant))
	filter.Cached = false
	handler := filter.Wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		kept := make(chan clientv3.WatchResponse, keeps)
		go func() {
			defer close(kept)
			for response := range client.Watch(r.Context(), "/pods/") {
				select {
				case kept <- response:
				case <-r.Context().Done():
				}
			}
		}()
		for response := range kept {
			if revision := response.Events[0].Kv.ModRevision; selects(revision) {
				if _, err := fmt.Fprintln(rw, revision); err != nil {
					return
				}
				w.sent.Store(revision)
				if len(kept) == 0 {
					rw.(http.Flusher).Flush()
				}
			}
		}
	}))
	go func() {
		defer close(w.ended)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=1", nil)
		handler.ServeHTTP(w.response, request)
	}()
	return w
}

// change sends changes, unless the watch has ended. It reports how many.
func (w *watching) change(number, size int) int {
	for i := range number {
		select {
		case w.changes <- change(int64(i+1), size):
		case <-w.ended:
			return i
		}
	}
	return number
}

func all(int64) bool  { return true }
func none(int64) bool { return false }

// TestUnreadChanges: a watch whose client reads nothing ends when it would keep too
// much; what it keeps counts for the tenant.
func TestUnreadChanges(t *testing.T) {
	const size = 100 << 10
	for name, tt := range map[string]struct {
		held  int64 // by others
		least int   // changes until the end
		most  int
	}{
		"alone":                        {0, 150, 180},
		"of a tenant with no room":     {tenantBudget, 2, 5},
		"of a tenant with little room": {tenantBudget - 2*unreadStep, 20, 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				tenant := newHost(math.MaxInt64).Add("a", Config{})
				tenant.held = tt.held
				w := startWatch(t, tenant, all)
				g.Expect(w.change(1000, size)).To(And(BeNumerically(">=", tt.least), BeNumerically("<=", tt.most)))
				<-w.ended
				synctest.Wait()
				g.Expect(tenant.Usage().Bytes).To(Equal(tt.held))
				g.Expect(tenant.Usage().Running[Watch]).To(BeZero())
			})
		})
	}
}

// TestUnreadChangesOfMany: watches whose clients read nothing leave memory to other
// requests, also if nothing changes any more.
func TestUnreadChangesOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		const watches, changes, size = 100, 40, 100 << 10
		tenant := newHost(math.MaxInt64).Add("a", Config{})
		ended := 0
		for range watches {
			w := startWatch(t, tenant, all)
			if w.change(changes, size) < changes {
				ended++
			}
			defer func() {
				close(w.response.reads)
				close(w.changes)
				<-w.ended
			}()
		}
		synctest.Wait()
		g.Expect(tenant.Usage().Bytes).To(BeNumerically("<=", tenantBudget/2+watches*baseCost))
		g.Expect(ended).To(And(BeNumerically(">", 0), BeNumerically("<", watches)))
		take(t, tenant, demand{kind: Write, cost: smallRequest}).release()
	})
}

// TestReadChanges: a watch whose client reads, or has none of the changes sent to
// it, gets any number of changes, and the apiserver few at a time.
func TestReadChanges(t *testing.T) {
	const size, number = 100 << 10, 2000
	for name, selects := range map[string]func(int64) bool{"all": all, "none": none, "some": func(i int64) bool { return i%100 == 0 }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				tenant := newHost(math.MaxInt64).Add("a", Config{})
				w := startWatch(t, tenant, selects)
				close(w.response.reads)
				for i := range number {
					w.changes <- change(int64(i+1), size)
					time.Sleep(10 * time.Millisecond) // the pace of writes is limited
				}
				synctest.Wait()
				time.Sleep(time.Minute)
				if selects(number) {
					g.Expect(w.sent.Load()).To(BeEquivalentTo(number))
				}
				g.Expect(w.ended).NotTo(BeClosed())
				g.Expect(tenant.Usage().Bytes).To(BeZero(), "nothing is kept")
				close(w.changes)
				<-w.ended
				g.Expect(tenant.Usage().Bytes).To(BeZero())
			})
		})
	}
}

// TestLateReader: changes come in order, and once, to a client that reads late.
func TestLateReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		const number = 100
		tenant := newHost(math.MaxInt64).Add("a", Config{})
		w := startWatch(t, tenant, all)
		g.Expect(w.change(number, 100<<10)).To(Equal(number))
		synctest.Wait()
		g.Expect(tenant.Usage().Bytes).To(BeNumerically(">", 8*unreadStep))
		g.Expect(w.response.Body.Len()).To(BeZero())
		close(w.response.reads)
		time.Sleep(time.Minute)
		want := ""
		for i := range number {
			want += fmt.Sprintln(i + 1)
		}
		g.Expect(w.response.Body.String()).To(Equal(want))
		g.Expect(tenant.Usage().Bytes).To(BeZero())
		close(w.changes)
		<-w.ended
	})
}

// TestUnreadChangesOutliveTheBeginning: the end of a watch's beginning releases
// its memory, except for the changes that the client has not read.
func TestUnreadChangesOutliveTheBeginning(t *testing.T) {
	g := NewWithT(t)
	tenant := newHost(math.MaxInt64).Add("a", Config{})
	grant := take(t, tenant, demand{kind: Watch, cost: largeBudget})
	b := &backlog{grant: grant}
	g.Expect(b.add(change(1, unreadStep))).To(BeTrue())
	grant.releaseMemory()
	g.Expect(tenant.Usage().Bytes).To(BeEquivalentTo(unreadStep))
	g.Expect(b.add(change(2, unreadStep))).To(BeTrue())
	g.Expect(tenant.Usage().Bytes).To(BeEquivalentTo(2 * unreadStep))
	grant.forget()
	g.Expect(tenant.Usage().Bytes).To(BeZero())
	g.Expect(b.add(change(3, unreadStep))).To(BeTrue())
	grant.release()
	grant.forget()
	g.Expect(tenant.Usage().Bytes).To(BeZero())
	g.Expect(tenant.unread).To(BeZero())
	g.Expect(b.add(change(4, 2*unreadStep))).To(BeFalse(), "the watch has ended")
}
