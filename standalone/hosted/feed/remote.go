package feed

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// readTimeout limits a read: a client of etcd would otherwise wait until
	// etcd responds.
	readTimeout = 10 * time.Second
	// reopenDelay is the time after which a watch that etcd has ended is opened
	// again. The client itself reconnects with backoff.
	reopenDelay = time.Second
)

var errEndedByEtcd = errors.New("etcd has ended the watch")

// Remote returns the etcd of a client as a source. Reads are linearizable, so
// that they see the changes of a watch, whichever member sent them.
func Remote(client *clientv3.Client) Source { return remote{client} }

type remote struct{ client *clientv3.Client }

// Watch implements Source. It waits until etcd responds.
func (r remote) Watch(ctx context.Context, prefix string) (Watch, error) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	responses := r.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	created, open := <-responses
	err := created.Err()
	if !open {
		err = cmp.Or(ctx.Err(), errEndedByEtcd)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &remoteWatch{responses: responses, cancel: cancel}, nil
}

// Read implements Source.
func (r remote) Read(ctx context.Context, begin, end []byte, options ReadOptions) (*Page, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	requested := []clientv3.OpOption{clientv3.WithLimit(options.Limit), clientv3.WithRev(options.Revision)}
	if len(end) > 0 {
		requested = append(requested, clientv3.WithRange(string(end)))
	}
	if options.CountOnly {
		requested = append(requested, clientv3.WithCountOnly())
	}
	response, err := r.client.Get(ctx, string(begin), requested...)
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil, ErrCompacted
	}
	if err != nil {
		return nil, err
	}
	return &Page{Records: response.Kvs, Count: int(response.Count), Revision: response.Header.Revision}, nil
}

type remoteWatch struct {
	responses clientv3.WatchChan
	cancel    context.CancelFunc
}

// Next implements Watch. The client continues a watch after a lost connection.
// A watch that ends otherwise, after a compaction for example, may have missed
// changes.
func (w *remoteWatch) Next(ctx context.Context) ([]mvccpb.Event, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case response, open := <-w.responses:
		if !open || response.Err() != nil {
			return nil, w.missed(ctx)
		}
		events := make([]mvccpb.Event, len(response.Events))
		for i, event := range response.Events {
			events[i] = mvccpb.Event(*event)
		}
		return events, nil
	}
}

// missed returns ErrMissed after a delay, so that a watch that ends again and
// again is not opened all the time.
func (w *remoteWatch) missed(ctx context.Context) error {
	timer := time.NewTimer(reopenDelay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return ErrMissed
	}
}

// Close implements Watch.
func (w *remoteWatch) Close() { w.cancel() }
