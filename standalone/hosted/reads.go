package hosted

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// readInProcess lets a client call the server for reads, without a connection:
// a list is not encoded and decoded once more, and is not in memory twice.
// Writes use the connection, where the interceptor of the server limits them.
func readInProcess(client *clientv3.Client, server *etcdserver.EtcdServer) {
	client.KV = readsInProcess{KV: client.KV, reads: v3client.New(server).KV}
}

type readsInProcess struct {
	clientv3.KV

	reads clientv3.KV
}

// Get implements clientv3.KV.
func (k readsInProcess) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return k.reads.Get(ctx, key, opts...)
}

// Do implements clientv3.KV.
func (k readsInProcess) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if op.IsGet() {
		return k.reads.Do(ctx, op)
	}
	return k.KV.Do(ctx, op)
}
