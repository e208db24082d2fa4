// Package oracle checks, below the keyspace, that requests to control planes
// that share a handler chain reach keys of their tenants only. It knows the
// tenant of a request by a value of its own in the context, which the outermost
// handler sets. Tests use it.
package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// Oracle checks the accesses to a store.
type Oracle struct {
	report                          func(violation string)
	attributed, nameless, violation atomic.Int64
}

// New returns an oracle that reports violations to a function.
func New(report func(violation string)) *Oracle { return &Oracle{report: report} }

type contextKey struct{}

// Attribute returns a handler whose requests are those of a tenant.
func (o *Oracle) Attribute(tenant string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other, ok := r.Context().Value(contextKey{}).(string); ok && other != tenant {
			o.violate(fmt.Sprintf("a request of tenant %s is served by tenant %s", other, tenant))
		}
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, tenant)))
	})
}

// Observe checks what a client of etcd does. It must be called before the
// client is confined to tenants.
func (o *Oracle) Observe(client *clientv3.Client) {
	client.KV, client.Watcher = kv{client.KV, o}, watcher{client.Watcher, o}
}

// Attributed returns the number of accesses by requests.
func (o *Oracle) Attributed() int64 { return o.attributed.Load() }

// Nameless returns the number of accesses by parts of a tenant outside of
// requests.
func (o *Oracle) Nameless() int64 { return o.nameless.Load() }

// Err returns an error if there was a violation, or if the oracle has seen no
// request.
func (o *Oracle) Err() error {
	if n := o.violation.Load(); n > 0 {
		return fmt.Errorf("%d accesses reached keys of another tenant", n)
	}
	if o.Attributed() == 0 {
		return errors.New("the oracle has seen no request")
	}
	return nil
}

func (o *Oracle) violate(text string) {
	o.violation.Add(1)
	o.report(text)
}

func (o *Oracle) checkOps(ctx context.Context, ops ...clientv3.Op) {
	for _, op := range ops {
		if op.IsTxn() {
			o.violate("a transaction in a transaction, which the oracle does not read")
		}
		o.check(ctx, op.KeyBytes(), op.RangeBytes())
	}
}

// check does not use the functions of the keyspace, which it checks.
func (o *Oracle) check(ctx context.Context, begin, end []byte) {
	tenant, ok := ctx.Value(contextKey{}).(string)
	if !ok {
		o.nameless.Add(1)
		return
	}
	o.attributed.Add(1)
	root := keyspace.Root + tenant
	last := []byte(root + "0") // the first key after the tenant's
	if !bytes.HasPrefix(begin, []byte(root+"/")) || bytes.Compare(end, last) > 0 {
		o.violate(fmt.Sprintf("a request of tenant %s reaches the keys from %s to %s", tenant, begin, end))
	}
}

// kv checks reads and writes.
type kv struct {
	clientv3.KV

	oracle *Oracle
}

// Do implements clientv3.KV.
func (k kv) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	k.oracle.checkOps(ctx, op)
	return k.KV.Do(ctx, op)
}

// Txn implements clientv3.KV.
func (k kv) Txn(ctx context.Context) clientv3.Txn { return txn{k.KV.Txn(ctx), k.oracle, ctx} }

// txn checks a transaction.
type txn struct {
	clientv3.Txn

	oracle *Oracle
	ctx    context.Context //nolint:containedctx // the interface has the context at the creation only
}

// If implements clientv3.Txn.
func (t txn) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	for _, c := range comparisons {
		t.oracle.check(t.ctx, c.KeyBytes(), c.RangeEnd)
	}
	t.Txn = t.Txn.If(comparisons...)
	return t
}

// Then implements clientv3.Txn.
func (t txn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.oracle.checkOps(t.ctx, ops...)
	t.Txn = t.Txn.Then(ops...)
	return t
}

// Else implements clientv3.Txn.
func (t txn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.oracle.checkOps(t.ctx, ops...)
	t.Txn = t.Txn.Else(ops...)
	return t
}

// watcher checks watches.
type watcher struct {
	clientv3.Watcher

	oracle *Oracle
}

// Watch implements clientv3.Watcher.
func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	w.oracle.checkOps(ctx, clientv3.OpGet(key, opts...))
	return w.Watcher.Watch(ctx, key, opts...)
}
