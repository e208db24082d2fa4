package transfer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

var (
	// errSealed is one that apiservers report as a store that does not respond:
	// clients retry.
	errSealed = status.Error(codes.Unavailable, "the data of the control plane is in another store, or on its way there")
	errNested = errors.New("a guarded client of etcd writes only in the branch of a transaction that has succeeded")
)

// Floors are the first revisions of tenants whose data has come from another
// etcd.
type Floors struct {
	mu sync.RWMutex
	of map[string]int64 // by tenant
}

// NewFloors returns floors of no tenant.
func NewFloors() *Floors { return &Floors{of: map[string]int64{}} }

// Set sets the first revision of a tenant; 0 for none.
func (f *Floors) Set(tenant string, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if revision == 0 {
		delete(f.of, tenant)
		return
	}
	f.of[tenant] = revision
}

// below reports whether a revision is before those of the tenant of a key, and
// returns the first one. Revision 0 is the latest.
func (f *Floors) below(key []byte, revision int64) (first int64, below bool) {
	tenant, _, ok := keyspace.Split(key)
	if !ok || revision <= 0 {
		return 0, false
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	first = f.of[tenant]
	return first, revision < first
}

// Guard has a client of apiservers respect moves: writes to a sealed side fail,
// and revisions of the etcd from which a tenant has come are compacted ones.
func Guard(client *clientv3.Client, floors *Floors) {
	client.KV = kv{client.KV, floors}
	client.Watcher = watcher{client.Watcher, floors}
}

// kv guards reads and writes.
type kv struct {
	clientv3.KV

	floors *Floors
}

// Get implements clientv3.KV.
func (k kv) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := k.Do(ctx, clientv3.OpGet(key, opts...))
	return response.Get(), err
}

// Put implements clientv3.KV.
func (k kv) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	response, err := k.Do(ctx, clientv3.OpPut(key, value, opts...))
	return response.Put(), err
}

// Delete implements clientv3.KV.
func (k kv) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	response, err := k.Do(ctx, clientv3.OpDelete(key, opts...))
	return response.Del(), err
}

// Do implements clientv3.KV.
func (k kv) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	switch {
	case op.IsGet():
		if _, below := k.floors.below(op.KeyBytes(), op.Rev()); below {
			return clientv3.OpResponse{}, rpctypes.ErrCompacted
		}
		return k.KV.Do(ctx, op)
	case op.IsTxn():
		comparisons, thens, elses := op.Txn()
		response, err := k.Txn(ctx).If(comparisons...).Then(thens...).Else(elses...).Commit()
		return response.OpResponse(), err
	}
	response, err := k.Txn(ctx).Then(op).Commit()
	if err != nil {
		return clientv3.OpResponse{}, err
	}
	if op.IsPut() {
		put := (*clientv3.PutResponse)(response.Responses[0].GetResponsePut())
		put.Header = response.Header
		return put.OpResponse(), nil
	}
	deleted := (*clientv3.DeleteResponse)(response.Responses[0].GetResponseDeleteRange())
	deleted.Header = response.Header
	return deleted.OpResponse(), nil
}

// Txn implements clientv3.KV.
func (k kv) Txn(ctx context.Context) clientv3.Txn { return &txn{ctx: ctx, inner: k.KV} }

// txn guards a transaction.
type txn struct {
	ctx          context.Context
	inner        clientv3.KV
	ifs          []clientv3.Cmp
	thens, elses []clientv3.Op
}

// If implements clientv3.Txn.
func (t *txn) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	t.ifs = append(t.ifs, comparisons...)
	return t
}

// Then implements clientv3.Txn.
func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.thens = append(t.thens, ops...)
	return t
}

// Else implements clientv3.Txn.
func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.elses = append(t.elses, ops...)
	return t
}

// Commit implements clientv3.Txn. A transaction that writes fails if the side is
// sealed: the branch for that also reads the seal, since its own comparisons
// may have failed as well.
func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	if slices.ContainsFunc(t.elses, writes) {
		return nil, errNested
	}
	first := slices.IndexFunc(t.thens, writes)
	if first < 0 {
		return t.inner.Txn(t.ctx).If(t.ifs...).Then(t.thens...).Else(t.elses...).Commit()
	}
	tenant, _, ok := keyspace.Split(t.thens[first].KeyBytes())
	if !ok {
		return nil, keyspace.ErrNoTenant
	}
	seal := Side{Tenant: tenant}.seal()
	response, err := t.inner.Txn(t.ctx).
		If(append(t.ifs, clientv3.Compare(clientv3.Version(seal), "=", 0))...).
		Then(t.thens...).
		Else(append(t.elses, clientv3.OpGet(seal, clientv3.WithCountOnly()))...).Commit()
	if err != nil || response.Succeeded {
		return response, err
	}
	last := len(response.Responses) - 1
	if response.Responses[last].GetResponseRange().GetCount() > 0 {
		return nil, errSealed
	}
	response.Responses = response.Responses[:last]
	return response, nil
}

// writes reports whether an operation may write.
func writes(op clientv3.Op) bool { return !op.IsGet() }

// watcher guards watches.
type watcher struct {
	clientv3.Watcher

	floors *Floors
}

// Watch implements clientv3.Watcher.
func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	// A watch begins with the revision after the one that its client knows.
	first, below := w.floors.below(op.KeyBytes(), op.Rev()-1)
	if !below {
		return w.Watcher.Watch(ctx, key, opts...)
	}
	expired := make(chan clientv3.WatchResponse, 1)
	expired <- clientv3.WatchResponse{CompactRevision: first, Canceled: true}
	close(expired)
	return expired
}
