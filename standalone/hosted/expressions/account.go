package expressions

import (
	"context"
	"fmt"
	"sync"

	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// Work returns how much work the expressions of a record are, in units of the
// package expression; zero if it cannot be decoded. A resource is named as in the
// keyspace.
type Work func(resource string, value []byte) int64

// Account has the work of all expressions that a control plane stores.
type Account struct {
	tenant    string
	feed      *feed.Feed
	resources []string
	work      Work

	mu sync.Mutex // guards all below
	// limit is the work of all records together; zero means no limit.
	limit    int64
	used     int64
	rejected int64
	// kinds has the records by their resource; nil before they are needed.
	kinds  map[string]*kind
	closed bool
}

// NewAccount returns the account of a tenant of a feed. Of the resources, records
// have expressions.
func NewAccount(tenant string, f *feed.Feed, resources []string, work Work) *Account {
	return &Account{tenant: tenant, feed: f, resources: resources, work: work}
}

// SetLimit sets the limit, in expressions of the usual length. It may be below what
// is stored. Zero means no limit.
func (a *Account) SetLimit(limit int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = limit * expression.Usual
}

// Usage is how much work the expressions of a control plane are, in expressions of
// the usual length.
type Usage struct {
	// Used is zero before the first write that has expressions.
	Used int64
	// Limit is zero if there is none.
	Limit int64
	// Rejected is the number of writes that were rejected.
	Rejected int64
}

// Usage returns what is used.
func (a *Account) Usage() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Usage{Used: usual(a.used), Limit: usual(a.limit), Rejected: a.rejected}
}

// usual returns how many expressions of the usual length are as much work, rounded
// up.
func usual(work int64) int64 { return (work + expression.Usual - 1) / expression.Usual }

// LimitError means that a write exceeds the limit.
type LimitError struct{ limit, used, more int64 }

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the expressions of all policies, webhooks, CustomResourceDefinitions and devices of this cluster "+
		"are limited to as much work as %d of the usual length, of which %d are used, and this write needs %d more: "+
		"delete objects, or ask the platform's administrator for a higher limit", usual(e.limit), usual(e.used), usual(e.more))
}

// Reserve admits a write of a record whose expressions are so much work, unless it
// exceeds the limit, which only a limited write can; the error is a *LimitError
// then. A write that does not add to the work of its record always succeeds. The
// caller must call Done when the result is known.
func (a *Account) Reserve(ctx context.Context, resource, name string, work int64, limited bool) (*Reservation, error) {
	if isOpen, err := a.open(work > 0); err != nil || !isOpen {
		return nil, err
	}
	// A client that does not wait must not make the next one begin again.
	if err := a.read(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.kinds[resource]
	needed := max(work-k.lockedCharge(name), 0)
	if limited && needed > 0 && a.limit > 0 && a.used+needed > a.limit {
		a.rejected++
		return nil, &LimitError{limit: a.limit, used: a.used, more: needed}
	}
	k.lockedChange(name, func(r *record) {
		r.writers++
		r.wanted = max(r.wanted, work)
	})
	return &Reservation{kind: k, name: name, work: work}, nil
}

// open reports whether the records are known, or will be after the next read, which
// they are if they are needed. The kinds stay the same then.
func (a *Account) open(needed bool) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false, feed.ErrClosed
	}
	if a.kinds != nil || !needed {
		return a.kinds != nil, nil
	}
	kinds := map[string]*kind{}
	for _, resource := range a.resources {
		subscription, err := a.feed.Subscribe(a.tenant, resource, func() {}) // each write looks for itself
		if err != nil {
			closeAll(kinds)
			return false, fmt.Errorf("follow the expressions that are stored: %w", err)
		}
		kinds[resource] = &kind{account: a, resource: resource, subscription: subscription, records: map[string]*record{}}
	}
	a.kinds = kinds
	return true, nil
}

func closeAll(kinds map[string]*kind) {
	for _, k := range kinds {
		k.subscription.Close()
	}
}

// read reads what has changed since the last read.
func (a *Account) read(ctx context.Context) error {
	for _, resource := range a.resources {
		k := a.kinds[resource]
		if err := k.subscription.Receive(ctx, k); err != nil {
			return fmt.Errorf("read the expressions that are stored: %w", err)
		}
	}
	return nil
}

// Deleted records that a record was deleted at a revision.
func (a *Account) Deleted(resource, name string, revision int64) {
	if isOpen, err := a.open(false); err != nil || !isOpen {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds[resource].lockedStored(name, 0, revision)
}

// Close ends the account. Writes fail from now on.
func (a *Account) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	closeAll(a.kinds)
}

// Reservation is the work that a write in flight may store. One that is nil has
// none.
type Reservation struct {
	kind *kind
	name string
	work int64
}

// Done ends the reservation of a write that was stored at a revision, which is zero
// if it was not, or if that is not known.
func (r *Reservation) Done(revision int64) {
	if r == nil {
		return
	}
	a := r.kind.account
	a.mu.Lock()
	defer a.mu.Unlock()
	r.kind.lockedStored(r.name, r.work, revision)
	r.kind.lockedChange(r.name, func(now *record) {
		if now.writers--; now.writers == 0 {
			now.wanted = 0
		}
	})
}
