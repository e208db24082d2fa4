package transfer

import (
	"context"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

const (
	// raiseKey is written to raise the revision of an etcd.
	raiseKey = "/revision"
	// raisers is the number of writes in flight, which leaves the etcd to its
	// control planes.
	raisers = 32
	// MaxRaise is the largest difference of revisions that is written.
	MaxRaise = 1_000_000
	// RaiseBytes is what each revision takes until it is compacted.
	RaiseBytes = 128
)

// FarBehindError reports an etcd whose revision is too far behind another one's.
type FarBehindError struct{ Revision, Target int64 }

// Error implements error.
func (e *FarBehindError) Error() string {
	return fmt.Sprintf("its revision %d would have to be %d, and no more than %d revisions are written for a move",
		e.Revision, e.Target, int64(MaxRaise))
}

// Behind returns how many revisions an etcd is behind another one, with a margin.
func Behind(ctx context.Context, from, to *clientv3.Client) (gap, target int64, err error) {
	var revisions [2]int64
	for i, client := range []*clientv3.Client{from, to} {
		now, err := client.Get(ctx, raiseKey, clientv3.WithCountOnly())
		if err != nil {
			return 0, 0, fmt.Errorf("read the revision of etcd: %w", err)
		}
		revisions[i] = now.Header.Revision
	}
	target = revisions[0] + margin
	if gap = max(target-revisions[1], 0); gap > MaxRaise {
		return gap, target, &FarBehindError{Revision: revisions[1], Target: target}
	}
	return gap, target, nil
}

// Raise raises the revision of an etcd to a target by writes, if it is behind. An
// etcd has no other way to change its revision while it runs.
func Raise(ctx context.Context, client *clientv3.Client, target int64) error {
	now, err := client.Get(ctx, raiseKey, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read the revision of etcd: %w", err)
	}
	revision := now.Header.Revision
	switch {
	case revision >= target:
		return nil
	case target-revision > MaxRaise:
		return &FarBehindError{Revision: revision, Target: target}
	}
	var left atomic.Int64
	left.Store(target - revision)
	group, ctx := errgroup.WithContext(ctx)
	for range raisers {
		group.Go(func() error {
			for left.Add(-1) >= 0 {
				if _, err := client.Put(ctx, raiseKey, ""); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("raise the revision of etcd: %w", err)
	}
	return nil
}
