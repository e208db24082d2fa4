package transfer_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

// pair starts two etcds, and returns the sides of a tenant in them.
// plenty is more room than a test needs.
const plenty = 1 << 30

func pair(t *testing.T) (from, to transfer.Side) {
	t.Helper()
	_, a := etcdtest.Start(t)
	_, b := etcdtest.Start(t)
	return transfer.Side{Client: a, Tenant: "red"}, transfer.Side{Client: b, Tenant: "red"}
}

// guarded returns a client of apiservers, and the floors that it respects.
func guarded(t *testing.T, of *clientv3.Client) (client *clientv3.Client, floors *transfer.Floors) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: of.Endpoints(), DialTimeout: time.Minute, Logger: zap.NewNop()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = client.Close() })
	floors = transfer.NewFloors()
	transfer.Guard(client, floors)
	return client, floors
}

func key(name string) string { return keyspace.Prefix("red") + "/pods/team/" + name }

// fill writes records of the tenant, and one of another tenant whose name begins
// with its name.
func fill(t *testing.T, side transfer.Side, number int) {
	t.Helper()
	g := NewWithT(t)
	for i := range number {
		_, err := side.Client.Put(t.Context(), key(fmt.Sprintf("pod-%d", i)), fmt.Sprintf("value %d", i))
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err := side.Client.Put(t.Context(), keyspace.Prefix("red1")+"/pods/team/pod", "of another")
	g.Expect(err).NotTo(HaveOccurred())
}

func value(t *testing.T, client *clientv3.Client, key string) string {
	t.Helper()
	response, err := client.Get(t.Context(), key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	if len(response.Kvs) == 0 {
		return ""
	}
	return string(response.Kvs[0].Value)
}

// TestCopy: the copy has what was written before the seal, of this tenant alone,
// and its revisions are after all of the old ones.
func TestCopy(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	from, to := pair(t)
	fill(t, from, 700)
	_, err := to.Clear(t.Context(), 0)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = to.Client.Put(t.Context(), key("left behind"), "by an interrupted copy")
	g.Expect(err).NotTo(HaveOccurred())
	lease, err := from.Client.Grant(t.Context(), 3600)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = from.Client.Put(t.Context(), key("event"), "expires", clientv3.WithLease(lease.ID))
	g.Expect(err).NotTo(HaveOccurred())

	copied, err := transfer.Copy(t.Context(), from, to, 1, plenty)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copied.Records).To(BeEquivalentTo(701))
	g.Expect(value(t, to.Client, key("pod-699"))).To(Equal("value 699"))
	g.Expect(value(t, to.Client, key("left behind"))).To(BeEmpty())
	g.Expect(value(t, to.Client, keyspace.Prefix("red1")+"/pods/team/pod")).To(BeEmpty())

	old, err := from.Client.Get(t.Context(), key("event"))
	g.Expect(err).NotTo(HaveOccurred())
	event, err := to.Client.Get(t.Context(), key("event"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(event.Kvs[0].ModRevision).To(BeNumerically(">", old.Header.Revision))
	left, err := to.Client.TimeToLive(t.Context(), clientv3.LeaseID(event.Kvs[0].Lease))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left.TTL).To(BeNumerically("~", 3600, 60))

	state, err := to.State(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Sealed).To(BeTrue(), "until it is opened")
	g.Expect(state.Since).To(BeNumerically(">=", event.Kvs[0].ModRevision))
	g.Expect(to.Open(t.Context(), 1)).To(Succeed())
	g.Expect(to.State(t.Context())).To(Equal(transfer.State{Since: state.Since, Attempt: 1, Complete: true}))
	g.Expect(from.State(t.Context())).To(Equal(transfer.State{Sealed: true, Attempt: 1, Complete: true}))
}

// TestCopyBack: a side that the data has left can have it again, without what it
// had before.
func TestCopyBack(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	from, to := pair(t)
	fill(t, from, 3)
	_, err := transfer.Copy(t.Context(), from, to, 1, plenty)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = to.Client.Delete(t.Context(), key("pod-1"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(transfer.CatchUp(t.Context(), to.Client, from.Client)).To(Succeed())
	copied, err := transfer.Copy(t.Context(), to, from, 2, plenty)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copied.Records).To(BeEquivalentTo(2))
	g.Expect(value(t, from.Client, key("pod-1"))).To(BeEmpty())
	g.Expect(value(t, from.Client, keyspace.Prefix("red1")+"/pods/team/pod")).To(Equal("of another"))
}

// TestEarlierAttempts: a process that was suspended changes nothing any more.
func TestEarlierAttempts(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	fill(t, from, 3)
	_, err := transfer.Copy(t.Context(), from, to, 2, plenty)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, attempt := range map[string]func(context.Context) error{
		"seals":  func(ctx context.Context) error { _, err := to.Seal(ctx, 1); return err },
		"opens":  func(ctx context.Context) error { return from.Open(ctx, 1) },
		"clears": func(ctx context.Context) error { _, err := to.Clear(ctx, 1); return err },
		"copies": func(ctx context.Context) error { _, err := transfer.Copy(ctx, from, to, 1, plenty); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(attempt(t.Context())).To(MatchError(transfer.ErrSuperseded))
			g.Expect(value(t, to.Client, key("pod-2"))).To(Equal("value 2"))
		})
	}
}

// TestOutdatedKnowledge: a mover whose status is older than the
// last move loses nothing.
func TestOutdatedKnowledge(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	old, current := pair(t)
	fill(t, old, 3)
	_, err := transfer.Copy(t.Context(), old, current, 1, plenty)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(current.Open(t.Context(), 1)).To(Succeed())

	_, err = transfer.Copy(t.Context(), old, current, 2, plenty)
	g.Expect(err).To(MatchError(transfer.ErrInUse), "from data that was left behind")
	_, err = current.Clear(t.Context(), 3)
	g.Expect(err).To(MatchError(transfer.ErrInUse))
	_, err = old.Clear(t.Context(), 3)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = old.Seal(t.Context(), 4)
	g.Expect(err).To(MatchError(transfer.ErrElsewhere), "it has nothing to copy")
	g.Expect(old.Open(t.Context(), 4)).To(MatchError(transfer.ErrElsewhere))
	g.Expect(value(t, current.Client, key("pod-2"))).To(Equal("value 2"))
}

// TestSeal: the etcd rejects each kind of write to a sealed side, and no other.
func TestSeal(t *testing.T) {
	side, _ := pair(t)
	client, _ := guarded(t, side.Client)
	fill(t, side, 1)
	unchanged := clientv3.Compare(clientv3.ModRevision(key("pod-0")), ">", 0)
	writes := map[string]func(context.Context) error{
		"put":    func(ctx context.Context) error { _, err := client.Put(ctx, key("new"), "x"); return err },
		"delete": func(ctx context.Context) error { _, err := client.Delete(ctx, key("nothing")); return err },
		"transaction": func(ctx context.Context) error {
			response, err := client.Txn(ctx).If(unchanged).Then(clientv3.OpPut(key("new"), "x")).Else(clientv3.OpGet(key("pod-0"))).Commit()
			if err == nil && !response.Succeeded {
				err = fmt.Errorf("it has not succeeded: %v", response.Responses)
			}
			return err
		},
		"in an operation": func(ctx context.Context) error {
			_, err := client.Do(ctx, clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(key("new"), "x")}, nil))
			return err
		},
	}
	for name, write := range writes {
		NewWithT(t).Expect(write(t.Context())).To(Succeed(), name+" before the seal")
	}
	_, err := side.Seal(t.Context(), 1)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(status.Code(write(t.Context()))).To(Equal(codes.Unavailable))
		})
	}
	t.Run("of another tenant", func(t *testing.T) {
		_, err := client.Put(t.Context(), keyspace.Prefix("red1")+"/pods/team/pod", "x")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Run("reads", func(t *testing.T) {
		g := NewWithT(t)
		response, err := client.Get(t.Context(), key("pod-0"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Kvs).To(HaveLen(1))
	})
	NewWithT(t).Expect(side.Open(t.Context(), 2)).To(Succeed())
	for name, write := range writes {
		NewWithT(t).Expect(write(t.Context())).To(Succeed(), name+" after it")
	}
}

// TestGuardOfTransactions: a transaction whose own comparisons fail returns what
// it would return without a guard.
func TestGuardOfTransactions(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	side, _ := pair(t)
	client, _ := guarded(t, side.Client)
	fill(t, side, 1)
	response, err := client.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(key("pod-0")), "=", 0)).
		Then(clientv3.OpPut(key("pod-0"), "x")).Else(clientv3.OpGet(key("pod-0"))).Commit()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Succeeded).To(BeFalse())
	g.Expect(response.Responses).To(HaveLen(1))
	g.Expect(response.Responses[0].GetResponseRange().Kvs).To(HaveLen(1))
	_, err = client.Txn(t.Context()).Else(clientv3.OpPut(key("pod-0"), "x")).Commit()
	g.Expect(err).To(HaveOccurred())
}

// TestFloors: revisions before the data has come are compacted ones.
func TestFloors(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	side, _ := pair(t)
	client, floors := guarded(t, side.Client)
	fill(t, side, 20)
	const since = 10
	floors.Set("red", since)
	for revision, want := range map[int64]error{
		0: nil, 1: rpctypes.ErrCompacted, since - 1: rpctypes.ErrCompacted, since: nil, since + 1: nil,
	} {
		_, err := client.Get(t.Context(), key(""), clientv3.WithPrefix(), clientv3.WithRev(revision))
		if want == nil {
			g.Expect(err).NotTo(HaveOccurred(), "read at %d", revision)
			continue
		}
		g.Expect(err).To(Equal(want), "read at %d", revision)
	}
	_, err := client.Get(t.Context(), keyspace.Prefix("red1")+"/pods/", clientv3.WithPrefix(), clientv3.WithRev(1))
	g.Expect(err).NotTo(HaveOccurred(), "another tenant")
	for known, want := range map[int64]error{since - 1: rpctypes.ErrCompacted, since: nil} {
		ctx, cancel := context.WithCancel(t.Context())
		response := <-client.Watch(ctx, key(""), clientv3.WithPrefix(), clientv3.WithRev(known+1))
		cancel()
		if want == nil {
			g.Expect(response.Err()).NotTo(HaveOccurred(), "watch from %d", known)
			g.Expect(response.Events[0].Kv.ModRevision).To(BeEquivalentTo(known + 1))
			continue
		}
		g.Expect(response.Err()).To(Equal(want), "watch from %d", known)
	}
}

// TestBound: a copy to an etcd that does not respond fails after a while.
func TestBound(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	from, _ := pair(t)
	fill(t, from, 1)
	silent, err := net.Listen("unix", filepath.Join(t.TempDir(), "silent"))
	g.Expect(err).NotTo(HaveOccurred())
	defer silent.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + silent.Addr().String()}, Logger: zap.NewNop()})
	g.Expect(err).NotTo(HaveOccurred())
	defer client.Close()
	transfer.Bound(client, time.Second)
	begin := time.Now()
	_, err = transfer.Copy(t.Context(), from, transfer.Side{Client: client, Tenant: "red"}, 1, plenty)
	g.Expect(err).To(HaveOccurred())
	g.Expect(time.Since(begin)).To(BeNumerically("<", time.Minute))
}

// TestCatchUp: a revision is raised once.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	from, to := pair(t)
	fill(t, from, 50)
	gap, err := transfer.Behind(t.Context(), from.Client, to.Client)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gap).To(BeNumerically(">", 10_000))
	g.Expect(transfer.CatchUp(t.Context(), from.Client, to.Client)).To(Succeed())
	raised := revision(t, to.Client)
	g.Expect(raised).To(BeNumerically(">", 10_000))
	g.Expect(transfer.CatchUp(t.Context(), from.Client, to.Client)).To(Succeed())
	g.Expect(revision(t, to.Client)).To(Equal(raised), "it is ahead")
}

// TestCopyKeepsAhead: the revision of the old etcd may have risen since the
// preparation.
func TestCopyKeepsAhead(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	fill(t, from, 3)
	copied, err := transfer.Copy(t.Context(), from, to, 1, plenty)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copied.Records).To(BeEquivalentTo(3))
	g.Expect(revision(t, to.Client)).To(BeNumerically(">", revision(t, from.Client)+4000))

	_, behind := etcdtest.Start(t)
	raise(t, from.Client, 12_000)
	_, err = transfer.Copy(t.Context(), from, transfer.Side{Client: behind, Tenant: "red"}, 2, plenty)
	g.Expect(err).To(MatchError(transfer.ErrOutrun), "by little only")
}

func TestRoom(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	from, to := pair(t)
	fill(t, from, 700)
	all, _, err := from.Sum(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = transfer.Copy(t.Context(), from, to, 1, all.Bytes-1)
	g.Expect(err).To(MatchError(transfer.ErrNoRoom))
	g.Expect(from.Open(t.Context(), 1)).To(Succeed())
	copied, err := transfer.Copy(t.Context(), from, to, 2, all.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copied).To(Equal(all))
}

// TestFull: the etcd has less room than was estimated.
func TestFull(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, source := etcdtest.Start(t)
	// An etcd knows its size as of its last commit to the disk.
	_, small := etcdtest.StartWith(t, func(config *embed.Config) {
		config.QuotaBackendBytes, config.BackendBatchLimit = 6<<20, 1
	})
	from, to := transfer.Side{Client: source, Tenant: "red"}, transfer.Side{Client: small, Tenant: "red"}
	g.Expect(transfer.CatchUp(t.Context(), source, small)).To(Succeed())
	for i := range 40 {
		_, err := source.Put(t.Context(), key(strconv.Itoa(i)), strings.Repeat("x", 256<<10))
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err := transfer.Copy(t.Context(), from, to, 1, plenty)
	g.Expect(err).To(MatchError(rpctypes.ErrNoSpace))
	g.Expect(from.Open(t.Context(), 1)).To(Succeed())
	g.Expect(from.State(t.Context())).To(Equal(transfer.State{Attempt: 1, Complete: true}))
	state, err := to.State(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Sealed).To(BeTrue(), "what was copied is no data of the tenant")

	_, err = to.Clear(t.Context(), 0)
	g.Expect(err).To(MatchError(transfer.ErrSuperseded))
	partial, _, err := to.Sum(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial.Records).NotTo(BeZero(), "an earlier attempt deletes nothing")
	// An etcd applies the write that fills it, and raises the alarm afterwards.
	g.Eventually(func(g Gomega) {
		raised, err := small.AlarmList(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(raised.Alarms).NotTo(BeEmpty())
	}, "30s").Should(Succeed())
	_, err = to.Clear(t.Context(), 2)
	g.Expect(err).To(MatchError(rpctypes.ErrNoSpace))
	left, _, err := to.Sum(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left.Records).To(BeZero(), "this makes room")
}

// TestOddKeys: an apiserver's keys are what tenants call their objects.
func TestOddKeys(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	from, to := pair(t)
	odd := map[string]string{
		key("a") + "/": "a trailing slash", key("a\x00b"): "a zero", key("a\xff\xff"): "no text", key(strings.Repeat("n", 1500)): "long",
		key("empty"): "", keyspace.Prefix("red") + "/": "the prefix itself",
	}
	for name, value := range odd {
		_, err := from.Client.Put(t.Context(), name, value)
		g.Expect(err).NotTo(HaveOccurred())
	}
	for _, others := range []string{keyspace.Prefix("red") + "0", keyspace.Prefix("red-1") + "/x", keyspace.Prefix("re") + "/d"} {
		_, err := from.Client.Put(t.Context(), others, "of another")
		g.Expect(err).NotTo(HaveOccurred())
	}
	copied, err := transfer.Copy(t.Context(), from, to, 1, plenty)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copied.Records).To(BeEquivalentTo(len(odd)))
	for name, want := range odd {
		g.Expect(value(t, to.Client, name)).To(Equal(want), "%q", name)
	}
}

func revision(t *testing.T, client *clientv3.Client) int64 {
	t.Helper()
	now, err := client.Get(t.Context(), "any")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return now.Header.Revision
}

// raise raises the revision of an etcd.
func raise(t *testing.T, client *clientv3.Client, by int) {
	t.Helper()
	for range by {
		_, err := client.Put(t.Context(), "/any", "")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
}
