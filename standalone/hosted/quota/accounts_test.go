package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// startAccounts starts an etcd without a guard, and returns a client with one,
// the accounts of its ledger, and a client of which the guard does not know.
func startAccounts(t *testing.T, limits Limits) (accounts *Accounts, guarded, other *clientv3.Client) {
	t.Helper()
	_, other, endpoint := startEtcd(t, 0)
	ledger := ledgerWith(limits)
	guarded, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(GuardClient(ledger))},
	})
	if err != nil {
		t.Fatal(err)
	}
	etcd := feed.Remote(other)
	accounts = NewAccounts(ledger, etcd, logr.Discard())
	ctx, end := context.WithCancel(context.Background())
	source, err := feed.New(ctx, etcd)
	if err != nil {
		end()
		t.Fatal(err)
	}
	source.AddTap(accounts)
	var running sync.WaitGroup
	running.Go(func() {
		if err := source.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() { accounts.Run(ctx) })
	t.Cleanup(func() {
		end()
		running.Wait()
		_ = guarded.Close()
	})
	return accounts, guarded, other
}

// open opens the accounts of control planes.
func open(t *testing.T, accounts *Accounts, planes ...string) {
	t.Helper()
	for _, name := range planes {
		if err := accounts.Open(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAccountsAgreeWithEtcd: after any sequence of changes by several clients,
// whenever the accounts are opened.
func TestAccountsAgreeWithEtcd(t *testing.T) {
	t.Parallel()
	accounts, guarded, other := startAccounts(t, Limits{})
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	for round := range 4 {
		var writers sync.WaitGroup
		for i, client := range []*clientv3.Client{guarded, other} {
			random := rand.New(rand.NewPCG(seed, uint64(2*round+i)))
			writers.Go(func() {
				for range 100 {
					if err := changeAtRandom(context.Background(), random, client); err != nil {
						t.Error(err)
					}
				}
			})
		}
		open(t, accounts, "a", "b")
		writers.Wait()
		agrees(t, accounts.ledger, other, "a", "b")
		accounts.Missed() // as after a compaction
	}
	accounts.Close("b")
	if got := accounts.ledger.Usage("b"); got != (Usage{}) {
		t.Errorf("a closed account has %+v", got)
	}
	if _, err := other.Put(t.Context(), root+"b/1", "of a closed account"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Put(t.Context(), root+"a/1", "of an open one"); err != nil {
		t.Fatal(err)
	}
	agrees(t, accounts.ledger, other, "a")
	if got := accounts.ledger.Usage("b"); got != (Usage{}) {
		t.Errorf("a closed account has %+v", got)
	}
}

// TestManyRecords reads an account of several pages.
func TestManyRecords(t *testing.T) {
	t.Parallel()
	accounts, _, other := startAccounts(t, Limits{})
	for i := range 2*accountPage + 1 {
		if _, err := other.Put(t.Context(), fmt.Sprintf("%sa/%d", root, i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"aa/1", "a", "a0"} { // of no control plane, or of another
		if _, err := other.Put(t.Context(), root+key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	open(t, accounts, "a")
	want, _ := stored(t, other, "a")
	if got := accounts.ledger.Usage("a"); got != want || got.Objects != 2*accountPage+1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestMissedChanges: after a gap, an account has the state of etcd again.
func TestMissedChanges(t *testing.T) {
	t.Parallel()
	accounts, _, other := startAccounts(t, Limits{})
	open(t, accounts, "a")
	accounts.ledger.put([]byte(root+"a/gone"), 100) // its deletion was missed
	accounts.Missed()
	eventually(t, "the account is read again", func() bool { return accounts.ledger.Usage("a") == Usage{} })
	if _, err := other.Put(t.Context(), root+"a/1", "later"); err != nil {
		t.Fatal(err)
	}
	agrees(t, accounts.ledger, other, "a")
}

// TestAFailedOpen: an account that cannot be read is not open, and does not
// keep changes.
func TestAFailedOpen(t *testing.T) {
	t.Parallel()
	accounts, _, _ := startAccounts(t, Limits{})
	ended, end := context.WithCancel(t.Context())
	end()
	if err := accounts.Open(ended, "a"); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("got %v", err)
	}
	accounts.mu.Lock()
	defer accounts.mu.Unlock()
	if len(accounts.open) > 0 {
		t.Errorf("%v are open", accounts.open)
	}
}

// slowly is an etcd whose reads wait.
type slowly struct {
	feed.Source
	reads chan chan struct{} // each read sends one, and waits until it is closed
}

func (s slowly) Read(ctx context.Context, begin, end []byte, options feed.ReadOptions) (*feed.Page, error) {
	page, err := s.Source.Read(ctx, begin, end, options)
	goOn := make(chan struct{})
	s.reads <- goOn
	<-goOn
	return page, err
}

// TestChangesDuringAReading: those of an account that is read again are known
// at once, since the reservations for them end; an account that is being opened
// is read again after a gap.
func TestChangesDuringAReading(t *testing.T) {
	t.Parallel()
	_, client, _ := startEtcd(t, 0)
	etcd := slowly{feed.Remote(client), make(chan chan struct{})}
	accounts := NewAccounts(ledgerWith(Limits{}), etcd, logr.Discard())
	put := func(key string) mvccpb.Event {
		response, err := client.Put(t.Context(), root+key, "x")
		if err != nil {
			t.Fatal(err)
		}
		return mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte(root + key), Value: []byte("x"), ModRevision: response.Header.Revision}}
	}
	expect := func(objects int64) {
		t.Helper()
		if got := accounts.ledger.Usage("a").Objects; got != objects {
			t.Errorf("the ledger has %d objects, want %d", got, objects)
		}
	}

	opened := make(chan error)
	go func() { opened <- accounts.Open(t.Context(), "a") }()
	first := <-etcd.reads
	put("a/missed")
	accounts.reload(t.Context()) // ends at once
	close(first)
	close(<-etcd.reads)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	expect(1)

	go func() { opened <- accounts.reopen(t.Context(), "a") }()
	second := <-etcd.reads
	accounts.Apply([]mvccpb.Event{put("a/later")})
	expect(2)
	close(second)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	expect(2)
}

// TestGuardClient: a client with a guard exceeds no limit, and what others have
// written counts.
func TestGuardClient(t *testing.T) {
	t.Parallel()
	accounts, guarded, other := startAccounts(t, Limits{Objects: 2})
	open(t, accounts, "a")
	if _, err := other.Put(t.Context(), root+"a/1", "of another process"); err != nil {
		t.Fatal(err)
	}
	agrees(t, accounts.ledger, other, "a")
	if _, err := guarded.Put(t.Context(), root+"a/2", ""); err != nil {
		t.Fatal(err)
	}
	_, err := guarded.Put(t.Context(), root+"a/3", "")
	if reason, text, ok := Rejection(fmt.Sprint(err)); !ok || reason != ReasonStorage || !strings.Contains(text, "limited to 2 objects") {
		t.Errorf("a third object: %v", err)
	}
	if _, err := guarded.Put(WithPurpose(t.Context(), Vital), root+"a/3", ""); err != nil {
		t.Errorf("a vital write: %v", err)
	}
	if _, err := guarded.Delete(t.Context(), root+"a/", clientv3.WithPrefix()); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	agrees(t, accounts.ledger, other, "a")
	if _, err := guarded.Put(t.Context(), root+"a/3", ""); err != nil {
		t.Errorf("a write within the limit: %v", err)
	}
}

// TestTotal: the store's limit applies to its size as a whole.
func TestTotal(t *testing.T) {
	t.Parallel()
	accounts, guarded, _ := startAccounts(t, Limits{})
	open(t, accounts, "a")
	accounts.ledger.capacity = kibi
	accounts.ledger.SetTotal(kibi)
	_, err := guarded.Put(t.Context(), root+"a/1", "x")
	if reason, _, ok := Rejection(fmt.Sprint(err)); !ok || reason != ReasonStore {
		t.Errorf("a write into a full store: %v", err)
	}
	accounts.ledger.SetTotal(0)
	if _, err := guarded.Put(t.Context(), root+"a/1", "x"); err != nil {
		t.Error(err)
	}
}
