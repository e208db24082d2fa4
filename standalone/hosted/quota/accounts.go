package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

const (
	// accountPage is the number of records that are read at once.
	accountPage = 500
	// firstReload and lastReload bound the time until accounts that could not be
	// read again after a gap are read once more.
	firstReload = time.Second
	lastReload  = time.Minute
	// reloadSteps is the number of delays until the last one.
	reloadSteps = 7
)

// Accounts keeps the accounts of a ledger for an etcd in another process, to
// which others write as well. It knows the control planes that are open, since
// reading all records of an etcd could take minutes.
//
// It is a tap of the feed of that etcd.
type Accounts struct {
	ledger *Ledger
	etcd   feed.Source
	log    logr.Logger
	gap    chan struct{} // has a capacity of one

	mu sync.Mutex
	// open has the accounts that are being read; nil for those that are up to
	// date.
	open map[string]*reading
}

// reading is an account that is being read.
type reading struct {
	// changes are those since the reading has begun.
	changes []change
	// again: the ledger has the account, which lacks some earlier changes.
	again bool
	// missed: there was a gap, so the records must be read once more.
	missed bool
}

// NewAccounts returns the accounts of a ledger, which has no others.
func NewAccounts(ledger *Ledger, etcd feed.Source, log logr.Logger) *Accounts {
	return &Accounts{ledger: ledger, etcd: etcd, log: log, gap: make(chan struct{}, 1), open: map[string]*reading{}}
}

// Open reads the records of a control plane, whose account is up to date when
// it returns. The control plane must not write before.
func (a *Accounts) Open(ctx context.Context, name string) error {
	begun := &reading{}
	a.mu.Lock()
	a.open[name] = begun
	a.mu.Unlock()
	err := a.fill(ctx, name, begun)
	if err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.open[name] == begun {
			delete(a.open, name)
		}
	}
	return err
}

// reopen reads the records of a control plane again, unless it was closed.
func (a *Accounts) reopen(ctx context.Context, name string) error {
	a.mu.Lock()
	begun, isOpen := a.open[name]
	switch {
	case begun != nil && !begun.again: // being opened
		begun.missed = true
		fallthrough
	case !isOpen:
		a.mu.Unlock()
		return nil
	}
	begun = &reading{again: true}
	a.open[name] = begun
	a.mu.Unlock()
	return a.fill(ctx, name, begun)
}

// fill replaces an account by what etcd has, and by the changes since then.
func (a *Accounts) fill(ctx context.Context, name string, begun *reading) error {
	for {
		records, revision, err := a.read(ctx, name)
		if err != nil {
			return fmt.Errorf("read the records of control plane %q: %w", name, err)
		}
		if a.replace(name, begun, records, revision) {
			return nil
		}
	}
}

// replace ends a reading, unless changes were missed during it.
func (a *Accounts) replace(name string, begun *reading, records []change, revision int64) (ended bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[name] != begun { // closed, or opened once more
		return true
	}
	if begun.missed {
		begun.missed = false
		return false
	}
	a.ledger.replace(name, records)
	for _, each := range begun.changes {
		if each.revision > revision {
			a.ledger.record(each)
		}
	}
	a.open[name] = nil
	return true
}

// Close forgets a control plane.
func (a *Accounts) Close(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, name)
	a.ledger.close(name)
}

// read returns the sizes of a control plane's records at one revision.
func (a *Accounts) read(ctx context.Context, name string) (records []change, revision int64, err error) {
	prefix := a.ledger.root + name + "/"
	begin, last := []byte(prefix), end(prefix)
	for {
		page, err := a.etcd.Read(ctx, begin, last, feed.ReadOptions{Limit: accountPage, Revision: revision})
		if errors.Is(err, feed.ErrCompacted) {
			return a.read(ctx, name) // compactions are rarer than this is long
		}
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = page.Revision
		}
		for _, kv := range page.Records {
			records = append(records, change{key: kv.Key, size: len(kv.Key) + len(kv.Value)})
		}
		if len(page.Records) < accountPage {
			return records, revision, nil
		}
		begin = slices.Concat(page.Records[len(page.Records)-1].Key, []byte{0}) // the next key
	}
}

// Apply implements feed.Tap.
func (a *Accounts) Apply(events []mvccpb.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range events {
		a.lockedApply(&events[i])
	}
	if len(events) > 0 {
		a.ledger.reached(events[len(events)-1].Kv.ModRevision)
	}
}

func (a *Accounts) lockedApply(event *mvccpb.Event) {
	name, ok := a.ledger.nameOf(event.Kv.Key)
	if !ok {
		return
	}
	under, isOpen := a.open[name]
	if !isOpen {
		return
	}
	if under != nil {
		under.changes = append(under.changes, changeOf(event))
	}
	if under == nil || under.again { // [Ledger.reached] releases what was reserved for it
		a.ledger.record(changeOf(event))
	}
}

// Missed implements feed.Tap.
func (a *Accounts) Missed() {
	select {
	case a.gap <- struct{}{}:
	default: // one reload is enough
	}
}

// Run reads all accounts again after changes were missed, until ctx ends.
func (a *Accounts) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.gap:
			a.reload(ctx)
		}
	}
}

func (a *Accounts) reload(ctx context.Context) {
	a.mu.Lock()
	names := slices.Collect(maps.Keys(a.open))
	a.mu.Unlock()
	for _, name := range names {
		backoff := wait.Backoff{Duration: firstReload, Cap: lastReload, Factor: 2, Steps: reloadSteps, Jitter: 0.1}
		_ = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			err := a.reopen(ctx, name)
			if err != nil && ctx.Err() == nil {
				a.log.Error(err, "Failed to count what a control plane stores, will retry")
			}
			return err == nil, nil
		})
	}
}
