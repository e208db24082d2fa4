package feed_test

import (
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
)

// unsettled is an etcd whose reads see a revision later than its watches do. In
// etcd itself, that is a matter of microseconds on an idle machine.
type unsettled struct {
	mvcc.WatchableKV

	late atomic.Bool
}

// Read implements mvcc.KV.
func (u *unsettled) Read(mode mvcc.ReadTxMode, trace *traceutil.Trace) mvcc.TxnRead {
	read := u.WatchableKV.Read(mode, trace)
	if u.late.Load() {
		return earlier{read}
	}
	return read
}

// earlier is a read before the last transaction.
type earlier struct{ mvcc.TxnRead }

// Rev implements mvcc.ReadView.
func (e earlier) Rev() int64 { return e.TxnRead.Rev() - 1 }

// startUnsettled returns an etcd whose reads are late, with a feed, and the
// changes that the feed has told an observer.
func startUnsettled(t *testing.T) (*unsettled, *clientv3.Client, *feed.Feed, <-chan feed.Kind) {
	t.Helper()
	kv, client := etcdtest.Start(t)
	etcd := &unsettled{WatchableKV: kv}
	etcd.late.Store(true)
	source, err := feed.New(t.Context(), feed.Embedded(etcd))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	observed := make(chan feed.Kind, 1)
	t.Cleanup(source.Observe(func(_, _ string, kind feed.Kind) { observed <- kind }))
	return etcd, client, source, observed
}

// TestChangesThatReadsDoNotSee: observers and subscribers are called for a change
// only when a read in response finds it.
func TestChangesThatReadsDoNotSee(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	etcd, client, source, observed := startUnsettled(t)
	run(t, source)
	_, woken := subscribe(g, source, "red")

	put(g, client, "red/pods/a/1", "new")
	g.Consistently(observed, "200ms").ShouldNot(Receive())
	g.Expect(woken).NotTo(Receive())
	etcd.late.Store(false)
	g.Eventually(observed, soon).Should(Receive(Equal(feed.Created)))
	g.Eventually(woken, soon).Should(Receive())
}

// TestAFeedEndsWhileReadsDoNotSeeAChange: a transaction that does not end does
// not keep the feed.
func TestAFeedEndsWhileReadsDoNotSeeAChange(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, client, source, observed := startUnsettled(t)
	stop := run(t, source)
	put(g, client, "red/pods/a/1", "new")
	stop()
	g.Expect(observed).NotTo(Receive())
}
