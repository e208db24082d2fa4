package transfer

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxOperations is the number of operations that every etcd accepts in a
	// transaction: its default of --max-txn-ops. One is kept for what comes with
	// the puts.
	maxOperations = 128 - 1
	// maxBytes limits the puts of a transaction. A larger record is in one of its
	// own, as when it was written.
	maxBytes = 512 << 10
)

var (
	// ErrNoRoom means that the data has become larger than the room for its copy.
	ErrNoRoom  = errors.New("the data has become larger than the room for it")
	errDiffers = errors.New("the copy differs from the data: it was changed meanwhile")
)

// Copy seals a side and copies its data to another one, which it clears first and
// leaves sealed. It returns what it has copied, which is room bytes at most. The
// copy is compared with the data before it is accepted. [CatchUp] comes first.
func Copy(ctx context.Context, from, to Side, attempt, room int64) (Sum, error) {
	if err := to.CheckUnused(ctx); err != nil {
		return Sum{}, err
	}
	sealed, err := from.Seal(ctx, attempt)
	if err != nil {
		return Sum{}, err
	}
	if err := keepAhead(ctx, to.Client, sealed+leastAhead); err != nil {
		return Sum{}, err
	}
	cleared, err := to.Clear(ctx, attempt)
	if err != nil {
		return Sum{}, err
	}
	c := &copying{
		from: from, to: to, at: cleared, room: room,
		leases: leases{from: from.Client, to: to.Client, granted: map[int64]clientv3.LeaseID{}},
	}
	if err := from.pages(ctx, c.add); err != nil {
		return Sum{}, fmt.Errorf("copy the data of control plane %q: %w", from.Tenant, err)
	}
	if err := c.flush(ctx); err != nil {
		return Sum{}, fmt.Errorf("copy the data of control plane %q: %w", from.Tenant, err)
	}
	copied, revision, err := to.Sum(ctx)
	if err != nil {
		return Sum{}, err
	}
	if copied != c.sum.Sum() {
		return Sum{}, errDiffers
	}
	return copied, to.accept(ctx, attempt, revision)
}

// copying is a copy in progress.
type copying struct {
	from, to Side
	// at is the revision of the record of the side to copy to. A later attempt
	// changes it.
	at int64
	// room is how many bytes are copied at most.
	room   int64
	leases leases
	sum    summing

	puts  []clientv3.Op
	bytes int
}

// add copies records.
func (c *copying) add(ctx context.Context, records []*mvccpb.KeyValue) error {
	for _, each := range records {
		c.sum.add(each)
		if c.sum.bytes > c.room {
			return ErrNoRoom
		}
		size := len(each.Key) + len(each.Value)
		if len(c.puts) == maxOperations || c.bytes+size > maxBytes {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
		lease, err := c.leases.of(ctx, each.Lease)
		if err != nil {
			return err
		}
		c.puts = append(c.puts, clientv3.OpPut(string(each.Key), string(each.Value), clientv3.WithLease(lease)))
		c.bytes += size
	}
	return nil
}

// flush writes what was added.
func (c *copying) flush(ctx context.Context) error {
	if len(c.puts) == 0 {
		return nil
	}
	response, err := c.to.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(c.to.recordAt()), "=", c.at)).Then(c.puts...).Commit()
	if err != nil {
		return err
	}
	if !response.Succeeded {
		return ErrSuperseded
	}
	c.puts, c.bytes = c.puts[:0], 0
	return nil
}
