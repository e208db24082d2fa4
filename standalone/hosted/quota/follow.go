package quota

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/encoding/protowire"
)

// ErrLagging means that a ledger has missed revisions of etcd.
var ErrLagging = errors.New("the revisions that the ledger has not seen are compacted")

// Follow initializes a ledger from etcd, and returns a function that keeps it
// up to date until its context ends. It does not read values: a record's key
// and size suffice.
func Follow(ledger *Ledger, kv mvcc.WatchableKV, store backend.Backend) (run func(context.Context) error, err error) {
	stream := kv.NewWatchStream()
	begin := stream.Rev()
	// Changes during the replay are recorded twice, which is harmless.
	if _, err := stream.Watch(mvcc.WatchID(1), []byte(ledger.root), end(ledger.root), begin+1); err != nil {
		stream.Close()
		return nil, fmt.Errorf("watch etcd: %w", err)
	}
	if err := replay(ledger, store); err != nil {
		stream.Close()
		return nil, err
	}
	ledger.reached(begin)
	return func(ctx context.Context) error {
		defer stream.Close()
		return ledger.follow(ctx, stream.Chan())
	}, nil
}

// end returns the first key after those with a prefix.
func end(prefix string) []byte {
	key := []byte(prefix)
	key[len(key)-1]++ // a slash
	return key
}

// replay records all revisions that etcd keeps, in order.
func replay(ledger *Ledger, store backend.Backend) error {
	tx := store.ConcurrentReadTx()
	tx.RLock()
	defer tx.RUnlock()
	return tx.UnsafeForEach(schema.Key, func(revision, record []byte) error {
		key, size, err := parse(record)
		if err != nil {
			return fmt.Errorf("read the record of revision %x: %w", revision, err)
		}
		if mvcc.IsTombstone(revision) {
			ledger.remove(key)
		} else {
			ledger.put(key, size)
		}
		return nil
	})
}

// parse returns a stored record's key and the size of key and value, without
// reading the value, most of which may not be in memory.
func parse(record []byte) (key []byte, size int, err error) {
	const keyField, valueField = 1, 5 // of mvccpb.KeyValue
	for len(record) > 0 {
		number, kind, n := protowire.ConsumeTag(record)
		if n < 0 {
			return nil, 0, protowire.ParseError(n)
		}
		record = record[n:]
		if n = protowire.ConsumeFieldValue(number, kind, record); n < 0 {
			return nil, 0, protowire.ParseError(n)
		}
		if number == keyField || number == valueField {
			field, _ := protowire.ConsumeBytes(record)
			size += len(field)
			if number == keyField {
				key = field
			}
		}
		record = record[n:]
	}
	return key, size, nil
}

func (l *Ledger) follow(ctx context.Context, responses <-chan mvcc.WatchResponse) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case response, open := <-responses:
			if !open || response.CompactRevision > 0 {
				return ErrLagging
			}
			l.apply(response.Events)
		}
	}
}

// change is a change of a record, or its deletion.
type change struct {
	key      []byte
	size     int // of key and value
	deleted  bool
	revision int64
}

func changeOf(event *mvccpb.Event) change {
	return change{
		key: event.Kv.Key, size: len(event.Kv.Key) + len(event.Kv.Value), deleted: event.Type == mvccpb.DELETE, revision: event.Kv.ModRevision,
	}
}

func (l *Ledger) apply(events []mvccpb.Event) {
	for _, event := range events {
		l.record(changeOf(&event))
	}
	if len(events) > 0 {
		l.reached(events[len(events)-1].Kv.ModRevision)
	}
}
