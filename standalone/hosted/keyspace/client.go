package keyspace

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/client/v3/namespace"
)

var errConfined = errors.New("a confined client of etcd offers no such operation")

// Confine restricts a client to the keys of the tenant of each call's context,
// and returns it as apiservers need it. Nothing else may use the client.
func Confine(client *clientv3.Client) *kubernetes.Client { return confine(client, Tenant) }

// ConfineTo restricts a client to the keys of one tenant. Calls whose context
// belongs to another one, or to none, fail.
func ConfineTo(client *clientv3.Client, tenant string) *kubernetes.Client {
	return confine(client, func(ctx context.Context) (string, error) {
		of, err := Tenant(ctx)
		if err == nil && of != tenant {
			err = fmt.Errorf("the client of tenant %q cannot reach tenant %q", tenant, of)
		}
		return of, err
	})
}

func confine(client *clientv3.Client, tenant tenantOf) *kubernetes.Client {
	client.KV = kv{client.KV, tenant}
	client.Watcher = watcher{client.Watcher, tenant}
	client.Lease = lease{Lease: client.Lease}
	confined := &kubernetes.Client{Client: client}
	confined.Kubernetes = confined
	return confined
}

// tenantOf returns the tenant of a call.
type tenantOf func(context.Context) (string, error)

// kv confines reads and writes.
type kv struct {
	inner  clientv3.KV
	tenant tenantOf
}

// Put implements clientv3.KV.
func (k kv) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	response, err := k.Do(ctx, clientv3.OpPut(key, value, opts...))
	return response.Put(), err
}

// Get implements clientv3.KV.
func (k kv) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := k.Do(ctx, clientv3.OpGet(key, opts...))
	return response.Get(), err
}

// Delete implements clientv3.KV.
func (k kv) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	response, err := k.Do(ctx, clientv3.OpDelete(key, opts...))
	return response.Del(), err
}

// Compact implements clientv3.KV. All tenants share the revisions.
func (kv) Compact(context.Context, int64, ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return nil, errConfined
}

// Do implements clientv3.KV.
func (k kv) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	tenant, err := k.tenant(ctx)
	if err != nil {
		return clientv3.OpResponse{}, err
	}
	if err := checkOp(op); err != nil {
		return clientv3.OpResponse{}, err
	}
	return namespace.NewKV(k.inner, Prefix(tenant)).Do(ctx, op)
}

// Txn implements clientv3.KV.
func (k kv) Txn(ctx context.Context) clientv3.Txn {
	tenant, err := k.tenant(ctx)
	if err != nil {
		return &txn{err: err}
	}
	return &txn{inner: namespace.NewKV(k.inner, Prefix(tenant)).Txn(ctx)}
}

// txn confines a transaction. It has no inner one without a tenant.
type txn struct {
	inner clientv3.Txn
	err   error
}

// If implements clientv3.Txn.
func (t *txn) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	for _, c := range comparisons {
		t.err = errors.Join(t.err, checkRange(c.KeyBytes(), c.RangeEnd))
	}
	if t.err == nil {
		t.inner = t.inner.If(comparisons...)
	}
	return t
}

// Then implements clientv3.Txn.
func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	if t.err = errors.Join(t.err, checkOps(ops)); t.err == nil {
		t.inner = t.inner.Then(ops...)
	}
	return t
}

// Else implements clientv3.Txn.
func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn {
	if t.err = errors.Join(t.err, checkOps(ops)); t.err == nil {
		t.inner = t.inner.Else(ops...)
	}
	return t
}

// Commit implements clientv3.Txn.
func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	if t.err != nil {
		return nil, t.err
	}
	return t.inner.Commit()
}

// watcher confines watches.
type watcher struct {
	clientv3.Watcher

	tenant tenantOf
}

// Watch implements clientv3.Watcher. A watch without a tenant ends at once,
// without events.
func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	tenant, err := w.tenant(ctx)
	if errors.Join(err, checkOp(clientv3.OpGet(key, opts...))) != nil {
		ended := make(chan clientv3.WatchResponse)
		close(ended)
		return ended
	}
	return namespace.NewWatcher(w.Watcher, Prefix(tenant)).Watch(ctx, key, opts...)
}

// lease only grants leases. Tenants share them: a lease is no secret, but the
// keys that are attached to it are.
type lease struct{ clientv3.Lease }

// TimeToLive implements clientv3.Lease.
func (lease) TimeToLive(context.Context, clientv3.LeaseID, ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return nil, errConfined
}

// Leases implements clientv3.Lease.
func (lease) Leases(context.Context) (*clientv3.LeaseLeasesResponse, error) { return nil, errConfined }

// Revoke implements clientv3.Lease.
func (lease) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return nil, errConfined
}
