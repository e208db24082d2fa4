package transfer

import (
	"context"
	"errors"
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
	// margin is how many revisions the new etcd is ahead of the old one: a process
	// that has not noticed the move yet reads the old one for a moment.
	margin = 10_000
	// leastAhead is what must be left of the margin when the data is copied, and
	// preparedAhead what is left before the control plane is stopped.
	leastAhead    = margin / 2
	preparedAhead = margin / 4 * 3
)

// ErrOutrun means that the revision of the etcd with the data rises nearly as fast
// as that of the other one is raised.
var ErrOutrun = errors.New("the revision of the etcd with the data rises nearly as fast as this one can be raised")

// FarBehindError reports an etcd whose revision is too far behind another one's.
type FarBehindError struct{ Revision, Target int64 }

// Error implements error.
func (e *FarBehindError) Error() string {
	return fmt.Sprintf("its revision %d would have to be %d, and no more than %d revisions are written for a move",
		e.Revision, e.Target, int64(MaxRaise))
}

// Behind returns how many revisions an etcd is behind another one, with a margin.
func Behind(ctx context.Context, from, to *clientv3.Client) (gap int64, err error) {
	at, err := revisionNow(ctx, from)
	if err != nil {
		return 0, err
	}
	behind, err := revisionNow(ctx, to)
	if err != nil {
		return 0, err
	}
	target := at + margin
	if gap = max(target-behind, 0); gap > MaxRaise {
		return gap, &FarBehindError{Revision: behind, Target: target}
	}
	return gap, nil
}

// CatchUp raises the revision of an etcd above that of another one, which rises
// meanwhile.
func CatchUp(ctx context.Context, from, to *clientv3.Client) error {
	for last := int64(0); ; {
		gap, err := Behind(ctx, from, to)
		switch {
		case err != nil:
			return err
		case gap <= margin-preparedAhead:
			return nil
		case outrun(last, gap):
			return ErrOutrun
		}
		if err := raise(ctx, to, gap); err != nil {
			return err
		}
		last = gap
	}
}

// outrun reports whether a gap does not shrink as it should by writing as many
// revisions as the last gap had; 0 for the first one.
func outrun(last, gap int64) bool { return last > 0 && gap > last/4*3 }

// keepAhead raises the revision of an etcd to a target while a control plane is
// stopped: little, or it takes too long.
func keepAhead(ctx context.Context, client *clientv3.Client, target int64) error {
	now, err := revisionNow(ctx, client)
	switch gap := target - now; {
	case err != nil:
		return err
	case gap > margin:
		return ErrOutrun
	case gap > 0:
		return raise(ctx, client, gap)
	}
	return nil
}

func revisionNow(ctx context.Context, client *clientv3.Client) (int64, error) {
	now, err := client.Get(ctx, raiseKey, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read the revision of etcd: %w", err)
	}
	return now.Header.Revision, nil
}

// raise raises the revision of an etcd by writes: an etcd has no other way to
// change it while it runs.
func raise(ctx context.Context, client *clientv3.Client, by int64) error {
	var left atomic.Int64
	left.Store(by)
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
