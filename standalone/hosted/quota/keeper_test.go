package quota

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rpctypes "go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/utils/clock"
)

const mebi = 1024 * kibi

// keeping is a keeper with the ledger that it reads.
type keeping struct {
	Keeper

	ledger *Ledger
}

// keeperOf returns the keeper of an etcd whose file may have a few mebibytes.
func keeperOf(t *testing.T) *keeping {
	t.Helper()
	const most = 4 * mebi
	_, client, endpoint := startEtcd(t, most)
	ledger := NewLedger(root, 0)
	return &keeping{ledger: ledger, Keeper: Keeper{
		History: ledger.History, Client: client, Endpoints: []string{endpoint}, Quota: most, MaxSuperseded: mebi, Log: logr.Discard(),
	}}
}

// fill writes records until etcd takes no more.
func fill(t *testing.T, client *clientv3.Client, keys int) {
	t.Helper()
	value := string(bytes.Repeat([]byte("x"), 256*kibi))
	var err error
	for i := 0; err == nil; i++ {
		_, err = client.Put(t.Context(), fmt.Sprintf("%sa/%d", root, i%keys), value)
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("got %v, want an etcd that has no space", err)
	}
	// Etcd applies the write that fills it, and raises the alarm afterwards.
	eventually(t, "etcd raises the alarm", func() bool {
		raised, err := client.AlarmList(t.Context())
		return err == nil && len(raised.Alarms) > 0
	})
}

// TestRecover tests that an etcd that has reached its quota rejects writes,
// even after deletions, until its alarm is disarmed.
func TestRecover(t *testing.T) {
	for name, test := range map[string]struct {
		// keys is how many records the writes go to.
		keys    int
		deleted bool
		fails   string
	}{
		"deleted records make room":                                {keys: 1000, deleted: true},
		"so do old revisions":                                      {keys: 2},
		"records that remain do not, and the error has what would": {keys: 1000, fails: "delete objects or tenants"},
	} {
		t.Run(name, func(t *testing.T) {
			k := keeperOf(t)
			fill(t, k.Client, test.keys)
			if test.deleted {
				if _, err := k.Client.Delete(t.Context(), root, clientv3.WithPrefix()); err != nil {
					t.Fatal(err)
				}
			}
			if test.fails != "" {
				eventually(t, "etcd counts the records", func() bool { return inUse(t, k) > lowWater })
			}
			err := k.keep(t.Context())
			// Etcd counts pages that a read uses at its next commit. Run repeats it.
			for range 50 {
				if err == nil || test.fails != "" {
					break
				}
				time.Sleep(100 * time.Millisecond)
				err = k.keep(t.Context())
			}
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got error %v, want %q", err, test.fails)
			}
			_, err = k.Client.Put(t.Context(), root+"a/last", "small")
			if (err == nil) != (test.fails == "") {
				t.Errorf("a write afterwards: got error %v", err)
			}
		})
	}
}

// inUse returns how many percent of etcd's quota its last commit uses.
func inUse(t *testing.T, k *keeping) int64 {
	t.Helper()
	status, err := k.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.DbSizeInUse * percent / k.Quota
}

// TestCompaction: what amounts to much is dropped one look later, so that a
// watch that lags a little does not lose its place.
func TestCompaction(t *testing.T) {
	k := keeperOf(t)
	oldest := put(t, k, "first")
	k.ledger.superseded, k.ledger.revision = 2*mebi, put(t, k, "second")
	look := func() error {
		t.Helper()
		if err := k.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := k.Client.Get(t.Context(), root+"a/x", clientv3.WithRev(oldest))
		return err
	}
	if err := look(); err != nil {
		t.Errorf("the first look has dropped a young revision: %v", err)
	}
	if err := look(); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v, and the second look should have dropped the old revision", err)
	}
	k.ledger.revision = put(t, k, "third")
	for range 2 {
		if err := look(); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
	}
	if _, err := k.Client.Get(t.Context(), root+"a/x", clientv3.WithRev(k.ledger.revision-1)); err != nil {
		t.Errorf("what amounts to little was dropped: %v", err)
	}
}

// TestCompactionIsAnnounced: apiservers learn what is compacted, whose caches
// continue older lists otherwise.
func TestCompactionIsAnnounced(t *testing.T) {
	k := keeperOf(t)
	compactor := etcd3.NewCompactor(k.Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	k.ledger.superseded, k.ledger.revision = 2*mebi, put(t, k, "first")
	for range 2 {
		if err := k.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "an apiserver knows the revision", func() bool { return compactor.CompactRevision() == k.ledger.revision })
	before := put(t, k, "second")
	if err := k.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := put(t, k, "third"); after != before+1 {
		t.Errorf("the same revision is written again")
	}
}

// TestCompactionIsRetried: revisions that could not be compacted are compacted
// by the next check, and not only once as many more are superseded.
func TestCompactionIsRetried(t *testing.T) {
	k := keeperOf(t)
	oldest := put(t, k, "first")
	k.ledger.superseded, k.ledger.revision = 2*mebi, put(t, k, "second")
	if err := k.compact(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.compact(canceled, time.Now()); err == nil {
		t.Fatal("a compaction that is canceled is no error")
	}
	if err := k.compact(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Client.Get(t.Context(), root+"a/x", clientv3.WithRev(oldest)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v, want the old revision compacted", err)
	}
	// Another client, such as etcd's periodic compaction, can be first.
	k.ledger.superseded, k.ledger.revision = 4*mebi, put(t, k, "third")
	if _, err := k.Client.Compact(t.Context(), put(t, k, "fourth")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.compact(t.Context(), time.Now()); err != nil {
			t.Errorf("revisions that are compacted already: %v", err)
		}
	}
}

// TestRun: an etcd that has reached its quota accepts writes again without an
// operator, once its clients have deleted records.
func TestRun(t *testing.T) {
	t.Parallel()
	k := keeperOf(t)
	fill(t, k.Client, 1000)
	if _, err := k.Client.Delete(t.Context(), root, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.Run(ctx)
	}()
	eventually(t, "a write succeeds", func() bool {
		_, err := k.Client.Put(t.Context(), root+"a/last", "small")
		return err == nil
	})
	end()
	<-ended
}

// TestKeeperNamesTheFailedStep: the error is all that an admin sees.
func TestKeeperNamesTheFailedStep(t *testing.T) {
	k := keeperOf(t)
	fill(t, k.Client, 1000)
	k.Endpoints = []string{"unix:///nowhere"}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := k.Recover(short); err == nil || !strings.Contains(err.Error(), "read etcd's status") {
		t.Errorf("without the status: got %v", err)
	}
	if err := k.Client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := k.keep(t.Context()); err == nil || !strings.Contains(err.Error(), "list etcd's alarms") {
		t.Errorf("without a connection: got %v", err)
	}
}

// put writes a record and returns its revision.
func put(t *testing.T, k *keeping, value string) int64 {
	t.Helper()
	response, err := k.Client.Put(t.Context(), root+"a/x", value)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// TestOldRevisionsAreCompacted: revisions are kept for five minutes, and for
// less than ten.
func TestOldRevisionsAreCompacted(t *testing.T) {
	k := keeperOf(t)
	start := time.Now()
	var written []int64
	for i := range 121 { // ten minutes
		now := start.Add(time.Duration(i) * keepInterval)
		k.ledger.revision = put(t, k, fmt.Sprint(i))
		written = append(written, k.ledger.revision)
		if err := k.compact(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if i < 60 {
			continue
		}
		if _, err := k.Client.Get(t.Context(), root+"a/x", clientv3.WithRev(written[i-60])); err != nil {
			t.Errorf("after %s, a revision of five minutes ago: %v", now.Sub(start), err)
		}
	}
	if _, err := k.Client.Get(t.Context(), root+"a/x", clientv3.WithRev(written[20])); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v, want a revision of more than eight minutes ago compacted", err)
	}
	if len(k.marks) > 3 {
		t.Errorf("%d marks are kept", len(k.marks))
	}
}
