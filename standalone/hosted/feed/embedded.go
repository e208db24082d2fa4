package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// settleInterval is the interval at which a watch checks whether a transaction
// has ended. It rarely needs a second check.
const settleInterval = 100 * time.Microsecond

// Embedded returns an etcd in this process as a source, which is read without a
// connection. It must not stop while it is used.
func Embedded(kv mvcc.WatchableKV) Source { return embedded{kv} }

type embedded struct{ kv mvcc.WatchableKV }

// Watch implements Source.
func (e embedded) Watch(_ context.Context, prefix string) (Watch, error) {
	stream := e.kv.NewWatchStream()
	begin, end := keyRange(prefix)
	if _, err := stream.Watch(mvcc.WatchID(1), begin, end, 0); err != nil {
		stream.Close()
		return nil, err
	}
	return &embeddedWatch{kv: e.kv, stream: stream}, nil
}

// Read implements Source.
func (e embedded) Read(ctx context.Context, begin, end []byte, options ReadOptions) (*Page, error) {
	result, err := e.kv.Range(ctx, begin, end, mvcc.RangeOptions{Limit: options.Limit, Rev: options.Revision, Count: options.CountOnly})
	if errors.Is(err, mvcc.ErrCompacted) {
		return nil, ErrCompacted
	}
	if err != nil {
		return nil, err
	}
	page := &Page{Count: result.Count, Revision: result.Rev, Records: make([]*mvccpb.KeyValue, len(result.KVs))}
	for i := range result.KVs {
		page.Records[i] = &result.KVs[i]
	}
	return page, nil
}

type embeddedWatch struct {
	kv     mvcc.WatchableKV
	stream mvcc.WatchStream
}

// Next implements Watch.
func (w *embeddedWatch) Next(ctx context.Context) ([]mvccpb.Event, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case response, open := <-w.stream.Chan():
		switch {
		case !open:
			return nil, ErrEnded
		case response.CompactRevision > 0:
			return nil, ErrMissed
		}
		return response.Events, w.settle(ctx, response.Events)
	}
}

// settle waits until reads see the changes. Etcd sends changes right before
// their transaction ends: without a wait, a list or count in response to a
// change could come before it, and the change would be lost.
func (w *embeddedWatch) settle(ctx context.Context, events []mvccpb.Event) error {
	if len(events) == 0 {
		return nil
	}
	last := events[len(events)-1].Kv.ModRevision
	for w.revision() < last {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for revision %d: %w", last, context.Cause(ctx))
		case <-time.After(settleInterval):
		}
	}
	return nil
}

// revision returns the one that reads see. It copies nothing of the store,
// unlike the method Rev.
func (w *embeddedWatch) revision() int64 {
	read := w.kv.Read(mvcc.SharedBufReadTxMode, traceutil.TODO())
	defer read.End()
	return read.Rev()
}

// Close implements Watch.
func (w *embeddedWatch) Close() { w.stream.Close() }
