package host

import (
	"context"
	"errors"
	"sync"

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

	mu     sync.Mutex
	shares assignment
	// mine has the control planes that this replica runs. The channel of one that
	// is being reconciled is closed at the end of that.
	mine map[types.NamespacedName]chan struct{}
}

func newDivision() *division {
	return &division{shares: share.Shares{}, mine: map[types.NamespacedName]chan struct{}{}}
}

// enter begins to reconcile a control plane, unless another replica runs it. The
// caller calls leave at the end.
func (d *division) enter(key types.NamespacedName) (leave func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, runs := d.mine[key]; !runs && !d.shares.Begins(key) {
		return nil, false
	}
	busy := make(chan struct{})
	d.mine[key] = busy
	return func() { close(busy) }, true
}

// forget records that a control plane does not exist any more.
func (d *division) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mine, key)
}

// keeps reports whether something that all replicas could do is for this one.
func (d *division) keeps(key types.NamespacedName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shares.Keeps(key)
}

// serve hands over the control planes that shares do not keep, and begins with
// those that they add.
func (d *division) serve(ctx context.Context, shares assignment) error {
	lost := d.take(shares)
	failed := make(chan error, len(lost))
	for key, busy := range lost {
		go func() { // ends with ctx, and is received below
			select {
			case <-busy:
				failed <- d.handOver(ctx, key)
			case <-ctx.Done():
				failed <- context.Cause(ctx)
			}
		}()
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

// take takes up shares and returns the control planes that they do not keep.
func (d *division) take(shares assignment) map[types.NamespacedName]chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shares = shares
	lost := map[types.NamespacedName]chan struct{}{}
	for key, busy := range d.mine {
		if !shares.Keeps(key) {
			lost[key] = busy
			delete(d.mine, key)
		}
	}
	return lost
}
