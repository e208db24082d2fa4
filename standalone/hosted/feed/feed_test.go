package feed_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const soon = 20 * time.Second

// received has the state that a subscription has reported.
type received struct {
	mu     sync.Mutex
	values map[string]string
	// changes are the changes since the last list, as name=value or -name.
	changes  []string
	revision int64
	listed   int64
}

func newReceived() *received { return &received{values: map[string]string{}} }

func (r *received) Receive(change feed.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change.Value == nil {
		delete(r.values, change.Name)
		r.changes = append(r.changes, "-"+change.Name)
	} else {
		r.values[change.Name] = string(change.Value)
		r.changes = append(r.changes, change.Name+"="+string(change.Value))
	}
	r.revision = change.Revision
}

func (r *received) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.values))
}

func (r *received) Listed(revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed = revision
}

func (r *received) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.changes
	r.changes = nil
	return changes
}

func put(g Gomega, client *clientv3.Client, key, value string) int64 {
	response, err := client.Put(context.Background(), keyspace.Root+key, value)
	g.Expect(err).NotTo(HaveOccurred())
	return response.Header.Revision
}

func remove(g Gomega, client *clientv3.Client, key string) {
	_, err := client.Delete(context.Background(), keyspace.Root+key)
	g.Expect(err).NotTo(HaveOccurred())
}

// onBoth runs a test on an etcd in this process, and on one that is only
// reached by its client.
func onBoth(t *testing.T, test func(*testing.T, feed.Source, *clientv3.Client)) {
	t.Helper()
	t.Parallel()
	for name, source := range map[string]func(mvcc.WatchableKV, *clientv3.Client) feed.Source{
		"embedded": func(kv mvcc.WatchableKV, _ *clientv3.Client) feed.Source { return feed.Embedded(kv) },
		"remote":   func(_ mvcc.WatchableKV, client *clientv3.Client) feed.Source { return feed.Remote(client) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kv, client := etcdtest.Start(t)
			test(t, source(kv, client), client)
		})
	}
}

// run runs a feed until the test has ended, or stop is called.
func run(t *testing.T, source *feed.Feed) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// subscribe subscribes to the pods of a tenant.
func subscribe(g Gomega, source *feed.Feed, tenant string) (*feed.Subscription, chan struct{}) {
	woken := make(chan struct{}, 1)
	s, err := source.Subscribe(tenant, "pods", func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	g.Expect(err).NotTo(HaveOccurred())
	return s, woken
}

// TestSubscription: a subscription reports the records of one resource of one
// tenant, and their changes.
func TestSubscription(t *testing.T) { onBoth(t, checkSubscription) }

func checkSubscription(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	put(g, client, "red/pods/a/1", "old")
	put(g, client, "red/pods/a/1", "new")
	put(g, client, "red/pods/a/2", "")
	others := []string{"red/podtemplates/a/1", "red1/pods/a/1", "re/pods/a/1", "red/example.com/pods/a/1", "blue/pods/a/1"}
	for _, key := range others {
		put(g, client, key, "of another")
	}
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source)

	s, woken := subscribe(g, source, "red")
	to := newReceived()
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.take()).To(Equal([]string{"a/1=new", "a/2="}))
	g.Expect(to.listed).To(BeNumerically(">", to.revision))

	for _, key := range others {
		put(g, client, key, "of another")
	}
	last := put(g, client, "red/pods/b/1", "added")
	g.Eventually(woken, soon).Should(Receive())
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.take()).To(Equal([]string{"b/1=added"}))
	g.Expect(to.revision).To(Equal(last))

	remove(g, client, "red/pods/a/2")
	g.Eventually(woken, soon).Should(Receive())
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.take()).To(Equal([]string{"-a/2"}))

	s.Close()
	put(g, client, "red/pods/b/1", "changed")
	g.Expect(s.Receive(t.Context(), to)).To(MatchError(feed.ErrClosed))
	g.Consistently(woken, "100ms").ShouldNot(Receive())
}

// TestCoalescing: changes that wait need no more memory than the records.
func TestCoalescing(t *testing.T) { onBoth(t, checkCoalescing) }

func checkCoalescing(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source)
	s, woken := subscribe(g, source, "red")
	to := newReceived()
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	end, seen := subscribe(g, source, "end")
	g.Expect(end.Receive(t.Context(), newReceived())).To(Succeed())

	for i := range 20 {
		put(g, client, "red/pods/a/1", fmt.Sprint(i))
		put(g, client, "red/pods/a/2", fmt.Sprint(i))
	}
	remove(g, client, "red/pods/a/2")
	put(g, client, "red/pods/a/3", "x")
	put(g, client, "red/pods/a/1", "last")
	put(g, client, "end/pods/a/1", "")
	g.Eventually(seen, soon).Should(Receive())
	g.Expect(woken).To(Receive())
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.take()).To(Equal([]string{"-a/2", "a/3=x", "a/1=last"}), "in the order of their revisions")
	g.Expect(woken).NotTo(Receive(), "an owner is woken once")
}

// TestStart: while records change, a subscription that begins misses no change
// and sees none twice. Each record counts up, so that a gap would show at the
// end, and an old value as a step back.
func TestStart(t *testing.T) { onBoth(t, checkStart) }

func checkStart(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source)
	const records, rounds = 500, 6 // several pages of a list
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for round := range rounds {
				for i := writer; i < records; i += 4 {
					key := fmt.Sprintf("red/pods/a/%03d", i)
					if (i+round)%5 == 0 {
						remove(g, client, key)
					} else {
						put(g, client, key, fmt.Sprint(round))
					}
				}
			}
		})
	}
	var readers sync.WaitGroup
	done := make(chan struct{})
	var all []*counting
	for range 5 {
		s, woken := subscribe(g, source, "red")
		c := &counting{received: newReceived(), t: t}
		all = append(all, c)
		readers.Go(func() {
			for {
				if err := s.Receive(context.Background(), c); err != nil {
					t.Error(err)
				}
				select {
				case <-woken:
				case <-done:
					return
				}
			}
		})
	}
	writers.Wait()
	want := map[string]string{}
	response, err := client.Get(t.Context(), keyspace.Root, clientv3.WithPrefix())
	g.Expect(err).NotTo(HaveOccurred())
	for _, kv := range response.Kvs {
		want[strings.TrimPrefix(string(kv.Key), keyspace.Root+"red/pods/")] = string(kv.Value)
	}
	for _, c := range all {
		g.Eventually(c.copy, soon).Should(Equal(want))
	}
	close(done)
	readers.Wait()
}

// counting checks that the changes of each record have growing revisions.
type counting struct {
	*received

	t    *testing.T
	last map[string]int64
}

func (c *counting) Receive(change feed.Change) {
	if c.last == nil {
		c.last = map[string]int64{}
	}
	if change.Revision <= c.last[change.Name] {
		c.t.Errorf("%s: revision %d comes after %d", change.Name, change.Revision, c.last[change.Name])
	}
	c.last[change.Name] = change.Revision
	c.received.Receive(change)
}

func (r *received) copy() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.values)
}

// TestCompaction: a feed that lags behind a compaction continues, and its
// subscribers get the changes and deletions that it missed. Observers get an
// event that they missed some.
func TestCompaction(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	kv, client := etcdtest.Start(t)
	put(g, client, "red/pods/a/1", "old")
	put(g, client, "red/pods/a/2", "old")
	put(g, client, "red/pods/a/3", "old")
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	g.Expect(err).NotTo(HaveOccurred())
	s, woken := subscribe(g, source, "red")
	to := newReceived()
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	to.take()
	missed := make(chan struct{}, 1)
	source.Observe(func(tenant, resource string, kind feed.Kind) {
		if kind == feed.Missed && tenant == "" && resource == "" {
			missed <- struct{}{}
		}
	})

	// The feed does not run: the watch stops when its buffer is full.
	for i := range 1000 {
		put(g, client, "red/pods/b/1", fmt.Sprint(i))
	}
	remove(g, client, "red/pods/a/1")
	put(g, client, "red/pods/a/2", "new")
	_, err = client.Compact(t.Context(), put(g, client, "blue/pods/a/1", "any"))
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source)
	g.Eventually(missed, soon).Should(Receive())
	g.Eventually(woken, soon).Should(Receive())
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.copy()).To(Equal(map[string]string{"a/2": "new", "a/3": "old", "b/1": "999"}))
	g.Expect(to.take()).To(ContainElement("-a/1"))

	put(g, client, "red/pods/a/3", "new")
	g.Eventually(woken, soon).Should(Receive())
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.take()).To(Equal([]string{"a/3=new"}))
}

// TestAFailedListIsRepeated: neither records nor changes are lost by it.
func TestAFailedListIsRepeated(t *testing.T) { onBoth(t, checkAFailedListIsRepeated) }

func checkAFailedListIsRepeated(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	put(g, client, "red/pods/a/1", "x")
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source)
	s, woken := subscribe(g, source, "red")
	to := newReceived()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(s.Receive(canceled, to)).To(MatchError(ContainSubstring("list pods")))
	put(g, client, "red/pods/a/2", "y")
	g.Eventually(woken, soon).Should(Receive())
	g.Expect(s.Receive(t.Context(), to)).To(Succeed())
	g.Expect(to.take()).To(Equal([]string{"a/1=x", "a/2=y"}))
}

// TestObserve: observers learn of all tenants' changes, without names and
// contents.
func TestObserve(t *testing.T) { onBoth(t, checkObserve) }

func checkObserve(t *testing.T, etcd feed.Source, client *clientv3.Client) {
	g := NewWithT(t)
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source)
	seen := make(chan string, 10)
	stop := source.Observe(func(tenant, resource string, kind feed.Kind) {
		seen <- fmt.Sprintf("%s %s %d", tenant, resource, kind)
	})
	put(g, client, "red/batch/jobs", "x")
	put(g, client, "red/jobs/a/1", "x")
	put(g, client, "red/jobs/a/1", "y")
	put(g, client, "blue/example.com/widgets/w", "y")
	remove(g, client, "red/jobs/a/1")
	for _, want := range []string{
		fmt.Sprint("red batch ", feed.Created), fmt.Sprint("red jobs ", feed.Created), fmt.Sprint("red jobs ", feed.Updated),
		fmt.Sprint("blue example.com/widgets ", feed.Created), fmt.Sprint("red jobs ", feed.Deleted),
	} {
		g.Eventually(seen, soon).Should(Receive(Equal(want)))
	}
	g.Expect(source.Count(t.Context(), "red", "jobs")).To(BeZero())
	g.Expect(source.Count(t.Context(), "blue", "example.com/widgets")).To(Equal(1))
	_, err = source.Count(t.Context(), "", "jobs")
	g.Expect(err).To(HaveOccurred())
	stop()
	put(g, client, "red/jobs/a/1", "x")
	g.Consistently(seen, "100ms").ShouldNot(Receive())
}

// TestEnd: after a feed has ended, nothing reads etcd, which may be stopped.
func TestEnd(t *testing.T) { onBoth(t, checkEnd) }

func checkEnd(t *testing.T, etcd feed.Source, _ *clientv3.Client) {
	g := NewWithT(t)
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	s, _ := subscribe(g, source, "red")
	run(t, source)()
	g.Expect(s.Receive(t.Context(), newReceived())).To(MatchError(feed.ErrEnded))
	_, err = source.Count(t.Context(), "red", "pods")
	g.Expect(err).To(MatchError(feed.ErrEnded))
}

// TestTenantsWithoutName: nothing subscribes to all tenants.
func TestTenantsWithoutName(t *testing.T) { onBoth(t, checkTenantsWithoutName) }

func checkTenantsWithoutName(t *testing.T, etcd feed.Source, _ *clientv3.Client) {
	g := NewWithT(t)
	source, err := feed.New(t.Context(), etcd)
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source)
	for tenant, resource := range map[string]string{"": "pods", "red/pods": "a", "red": "", "blue": "pods/a"} {
		_, err := source.Subscribe(tenant, resource, func() {})
		g.Expect(err).To(HaveOccurred(), tenant)
	}
}
