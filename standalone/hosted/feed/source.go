package feed

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// ErrMissed means that a watch has missed changes, and has ended.
var ErrMissed = errors.New("changes were missed")

// Source is an etcd: one in this process ([Embedded]), or another one
// ([Remote]).
type Source interface {
	// Watch watches the keys that begin with a prefix, from the next revision on.
	// The watch ends with ctx.
	Watch(ctx context.Context, prefix string) (Watch, error)
	// Read reads the records of a range of keys; without an end, that of the key
	// begin. It returns [ErrCompacted] for a revision that no longer exists.
	Read(ctx context.Context, begin, end []byte, options ReadOptions) (*Page, error)
}

// ErrCompacted means that a revision to be read is compacted.
var ErrCompacted = errors.New("the revision is compacted")

// Watch is a watch of an etcd.
type Watch interface {
	// Next waits for changes. Reads that begin after it has returned see them. It
	// returns [ErrMissed] if there are changes that it cannot return.
	Next(ctx context.Context) ([]mvccpb.Event, error)
	// Close ends the watch.
	Close()
}

// ReadOptions are the options of a read.
type ReadOptions struct {
	// Limit limits the number of records, if it is not zero.
	Limit int64
	// Revision is the revision to read; 0 for the latest.
	Revision int64
	// CountOnly returns no records.
	CountOnly bool
}

// Page is the result of a read.
type Page struct {
	Records []*mvccpb.KeyValue
	// Count is the number of records in the range, which may be more than those
	// of the page.
	Count int
	// Revision is the latest revision at the time of the read.
	Revision int64
}
