package transfer

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Bound limits each request of a client to a time. The client itself repeats reads
// of an etcd that hangs.
func Bound(client *clientv3.Client, limit time.Duration) {
	client.KV = boundKV{client.KV, limit}
	client.Lease = boundLease{client.Lease, limit}
}

// boundKV limits reads and writes.
type boundKV struct {
	clientv3.KV

	limit time.Duration
}

// Get implements clientv3.KV.
func (k boundKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	return k.KV.Get(ctx, key, opts...)
}

// Put implements clientv3.KV.
func (k boundKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	return k.KV.Put(ctx, key, value, opts...)
}

// Txn implements clientv3.KV.
func (k boundKV) Txn(ctx context.Context) clientv3.Txn {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	return &boundTxn{k.KV.Txn(ctx), cancel}
}

// boundTxn is a transaction with a limit, which is always committed.
type boundTxn struct {
	inner  clientv3.Txn
	cancel context.CancelFunc
}

// If implements clientv3.Txn.
func (t *boundTxn) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	t.inner = t.inner.If(comparisons...)
	return t
}

// Then implements clientv3.Txn.
func (t *boundTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.inner = t.inner.Then(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *boundTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.inner = t.inner.Else(ops...)
	return t
}

// Commit implements clientv3.Txn.
func (t *boundTxn) Commit() (*clientv3.TxnResponse, error) {
	defer t.cancel()
	return t.inner.Commit()
}

// boundLease limits requests of leases.
type boundLease struct {
	clientv3.Lease

	limit time.Duration
}

// Grant implements clientv3.Lease.
func (l boundLease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	return l.Lease.Grant(ctx, ttl)
}

// TimeToLive implements clientv3.Lease.
func (l boundLease) TimeToLive(
	ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption,
) (*clientv3.LeaseTimeToLiveResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	return l.Lease.TimeToLive(ctx, id, opts...)
}
