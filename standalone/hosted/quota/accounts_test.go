package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
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
