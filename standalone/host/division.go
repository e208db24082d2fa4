package host

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/share"
)

// assignment says which control planes are for this replica. It is implemented by
// [share.Shares].
type assignment interface {
	// Keeps reports whether one that this replica runs is still for it.
	Keeps(key types.NamespacedName) bool
	// Begins reports whether this replica may begin to run one.
	Begins(key types.NamespacedName) bool
}

// division is which control planes this replica runs, as one of several.
type division struct {
	// handOver stops what of a control plane may run in one replica at a time.
	handOver func(context.Context, types.NamespacedName) error
	// again has all control planes reconciled.
	again func(context.Context) error
	// reason is why control planes are handed over now.
	reason    func() string
	handovers *handovers

	mu     sync.Mutex
	shares assignment
	// mine has the control planes that this replica runs, and lost those that it has
	// to hand over.
	mine, lost map[types.NamespacedName]*tenure
}

// tenure is the time in which this replica runs a control plane.
type tenure struct {
	// reconciled is closed at the end of the last reconcile, whose context ends with
	// cancel.
	reconciled chan struct{}
	cancel     context.CancelFunc
}

func newDivision(measured *handovers, reason func() string) *division {
	return &division{
		handovers: measured, reason: reason, shares: share.Shares{},
		mine: map[types.NamespacedName]*tenure{}, lost: map[types.NamespacedName]*tenure{},
	}
}

// enter begins to reconcile a control plane, unless another replica runs it. The
// context ends when the control plane is to be handed over. The caller calls leave
// at the end.
func (d *division) enter(ctx context.Context, key types.NamespacedName) (inner context.Context, leave func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, runs := d.mine[key]
	if _, lost := d.lost[key]; lost || !runs && !d.shares.Begins(key) {
		return ctx, nil, false
	}
	d.handovers.end(key, resultTakenBack, time.Now())
	inner, cancel := context.WithCancel(ctx)
	reconciled := make(chan struct{})
	d.mine[key] = &tenure{reconciled, cancel}
	return inner, func() {
		cancel()
		close(reconciled)
	}, true
}

// forget records that a control plane does not exist any more.
func (d *division) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mine, key)
	d.handovers.forget(key)
}

// keeps reports whether something that all replicas could do is for this one.
func (d *division) keeps(key types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shares.Keeps(key)
}

// serve hands over the control planes that shares do not keep, and begins with
// those that they add. After an error, the next call hands over those that remain.
func (d *division) serve(ctx context.Context, shares assignment) error {
	lost := d.take(shares)
	failed := make(chan error, len(lost))
	for key, of := range lost {
		go func() { failed <- d.end(ctx, key, of) }() // ends with ctx, and is received below
	}
	errs := make([]error, 0, len(lost))
	for range lost {
		errs = append(errs, <-failed)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return d.again(ctx)
}

// take takes up shares and returns the control planes to hand over.
func (d *division) take(shares assignment) map[types.NamespacedName]*tenure {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shares = shares
	reason, now := d.reason(), time.Now()
	for key, of := range d.mine {
		if !shares.Keeps(key) {
			d.handovers.begin(key, reason, now)
			d.lost[key] = of
			delete(d.mine, key)
		}
	}
	return maps.Clone(d.lost)
}

// end hands over a control plane.
func (d *division) end(ctx context.Context, key types.NamespacedName, of *tenure) error {
	of.cancel()
	select {
	case <-of.reconciled:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := d.handOver(ctx, key); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.lost, key)
	return nil
}
