package expressions_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/feedtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const (
	tenant   = "red"
	policies = "policies"
	claims   = "claims"
)

// numberOf is the work of a record of these tests: its value, in expressions of the
// usual length.
func numberOf(_ string, value []byte) int64 {
	number, _ := strconv.Atoi(string(value))
	return int64(number) * expression.Usual
}

// world is an etcd with the account of a tenant.
type world struct {
	*testing.T

	client  *clientv3.Client
	feed    *feed.Feed
	account *expressions.Account
}

func newWorld(t *testing.T, limit int64) *world {
	t.Helper()
	store := feedtest.Start(t)
	w := &world{T: t, client: store.Client, feed: store.Feed}
	w.restart(limit)
	return w
}

// restart begins a new account.
func (w *world) restart(limit int64) {
	if w.account != nil {
		w.account.Close()
	}
	w.account = expressions.NewAccount(tenant, w.feed, []string{policies, claims}, numberOf)
	w.account.SetLimit(limit)
}

func key(resource, name string) string { return keyspace.Prefix(tenant) + "/" + resource + "/" + name }

// put writes a record as another process does.
func (w *world) put(resource, name string, number int64) int64 {
	w.Helper()
	response, err := w.client.Put(context.Background(), key(resource, name), strconv.FormatInt(number, 10))
	if err != nil {
		w.Fatal(err)
	}
	return response.Header.Revision
}

// write writes a record as an apiserver of this process does.
func (w *world) write(resource, name string, number int64) error {
	w.Helper()
	reserved, err := w.account.Reserve(context.Background(), resource, name, number*expression.Usual, true)
	if err != nil {
		return err
	}
	reserved.Done(w.put(resource, name, number))
	return nil
}

// remove deletes a record as an apiserver of this process does.
func (w *world) remove(resource, name string) {
	w.Helper()
	response, err := w.client.Delete(context.Background(), key(resource, name))
	if err != nil {
		w.Fatal(err)
	}
	w.account.Deleted(resource, name, response.Header.Revision)
}

// stored returns what etcd has.
func (w *world) stored() (sum int64) {
	w.Helper()
	response, err := w.client.Get(context.Background(), keyspace.Prefix(tenant)+"/", clientv3.WithPrefix())
	if err != nil {
		w.Fatal(err)
	}
	for _, kv := range response.Kvs {
		sum += numberOf("", kv.Value) / expression.Usual
	}
	return sum
}

// agrees waits until the account has what etcd has. A write without expressions
// lets it look.
func (w *world) agrees() {
	w.Helper()
	var got, want int64
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		reserved, err := w.account.Reserve(context.Background(), claims, "none", 0, true)
		if err != nil {
			w.Fatal(err)
		}
		reserved.Done(0)
		if got, want = w.account.Usage().Used, w.stored(); got == want {
			return
		}
	}
	w.Errorf("the account has %d, and etcd %d", got, want)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) mustReject(err error) {
	w.Helper()
	if _, ok := errors.AsType[*expressions.LimitError](err); !ok {
		w.Fatalf("not rejected: %v", err)
	}
}

// TestLimit: what a control plane may store, from the beginning on.
func TestLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.put(policies, "before", 4)
	w.put(claims, "team/before", 1)
	w.must(w.write(policies, "a", 5))
	err := w.write(claims, "team/b", 1)
	w.mustReject(err)
	for _, part := range []string{"limited to as much work as 10", "of which 10 are used", "needs 1 more", "administrator"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
	if got, want := w.account.Usage(), (expressions.Usage{Used: 10, Limit: 10, Rejected: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	w.must(w.write(policies, "a", 5)) // as before
	w.must(w.write(policies, "none", 0))
	w.mustReject(w.write(policies, "a", 6))
	w.must(w.write(policies, "a", 3))
	w.must(w.write(claims, "team/b", 2))
	w.remove(policies, "before")
	w.must(w.write(policies, "c", 4))
	w.agrees()

	w.account.SetLimit(2) // lowered: nothing is lost, and nothing grows
	w.must(w.write(policies, "a", 3))
	w.mustReject(w.write(policies, "d", 1))
	w.account.SetLimit(0)
	w.must(w.write(policies, "d", 1000))
	w.agrees()

	w.restart(5)
	if used := w.account.Usage().Used; used != 0 {
		t.Errorf("%d are used before they are read", used)
	}
	w.mustReject(w.write(policies, "e", 1))
	if got, want := w.account.Usage().Used, w.stored(); got != want {
		t.Errorf("the account has %d after a restart, and etcd %d", got, want)
	}
}

// TestReservations: writes in flight count, whatever becomes of them.
func TestReservations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	reserve := func(name string, number int64, limited bool) *expressions.Reservation {
		t.Helper()
		reserved, err := w.account.Reserve(t.Context(), policies, name, number*expression.Usual, limited)
		w.must(err)
		return reserved
	}
	first, second := reserve("a", 6, true), reserve("a", 4, true)
	w.mustReject(w.write(policies, "b", 5))
	w.must(w.write(policies, "b", 4))
	second.Done(0) // failed
	w.mustReject(w.write(policies, "b", 5))
	first.Done(0)
	w.must(w.write(policies, "b", 10))

	reserve("c", 5, false).Done(w.put(policies, "c", 5)) // the control plane's own
	if used := w.account.Usage().Used; used != 15 {
		t.Errorf("%d are used", used)
	}
	lost := reserve("b", 3, true) // whose response does not come
	w.put(policies, "b", 3)
	lost.Done(0)
	w.agrees()
	w.must(w.write(policies, "d", 2))

	late := reserve("c", 5, true) // whose response comes after the next change
	revision := w.put(policies, "c", 5)
	w.put(policies, "c", 1)
	w.put(policies, "e", 1)
	before := w.account.Usage().Used
	for end := time.Now().Add(30 * time.Second); w.account.Usage().Used != before+1; time.Sleep(time.Millisecond) {
		reserve("none", 0, true).Done(0)
		if time.Now().After(end) {
			t.Fatal("the next change does not come")
		}
	}
	late.Done(revision)
	if used := w.account.Usage().Used; used != w.stored() {
		t.Errorf("%d are used, and etcd has %d", used, w.stored())
	}
}

// TestNothingIsReadWithoutExpressions: a control plane without any costs nothing.
func TestNothingIsReadWithoutExpressions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.put(policies, "before", 4)
	w.must(w.write(claims, "team/none", 0))
	w.remove(claims, "team/none")
	if used := w.account.Usage().Used; used != 0 {
		t.Errorf("%d are used", used)
	}
}

// TestClosed: a write of a control plane that has stopped fails.
func TestClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	accounts := expressions.NewAccounts()
	accounts.Add(w.account)
	if accounts.Of(tenant) != w.account || accounts.Of("other") != nil {
		t.Error("another account was found")
	}
	accounts.Remove(w.account)
	if accounts.Of(tenant) != nil {
		t.Error("a removed account was found")
	}
	if err := w.write(policies, "a", 1); !errors.Is(err, feed.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestAgreesWithEtcd: after any sequence of concurrent writes of this process, of
// which some get no response, and of others. The limit holds without these.
func TestAgreesWithEtcd(t *testing.T) {
	t.Parallel()
	const limit = 60
	w := newWorld(t, limit)
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	for round := range 6 {
		var writers sync.WaitGroup
		for i := range 8 {
			random := rand.New(rand.NewPCG(seed, uint64(8*round+i)))
			writers.Go(func() { w.changeAtRandom(random, round > 3) })
		}
		writers.Wait()
		w.agrees()
		if sum := w.stored(); round <= 3 && sum > limit {
			t.Errorf("%d are stored, and the limit is %d", sum, limit)
		}
		if round%2 == 1 {
			w.restart(limit)
		}
	}
}

func (w *world) changeAtRandom(random *rand.Rand, others bool) {
	for range 200 {
		resource, name := policies, fmt.Sprintf("%d", random.IntN(12))
		if random.IntN(2) == 0 {
			resource, name = claims, "team/"+name
		}
		number, choice := random.Int64N(10), random.IntN(8)
		switch {
		case choice < 2:
			w.remove(resource, name)
		case others && choice < 4:
			w.put(resource, name, number)
		case others && choice < 5:
			reserved, err := w.account.Reserve(context.Background(), resource, name, number*expression.Usual, true)
			if err == nil {
				w.put(resource, name, number)
				reserved.Done(0) // no response
			}
		default:
			if err := w.write(resource, name, number); err != nil {
				w.mustReject(err)
			}
		}
	}
}
