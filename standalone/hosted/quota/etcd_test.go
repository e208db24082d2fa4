package quota

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
)

// startEtcd starts an etcd whose unary requests pass the interceptors, and
// returns it with a client and its endpoint.
func startEtcd(t *testing.T, quota int64, interceptors ...grpc.UnaryServerInterceptor) (*embed.Etcd, *clientv3.Client, string) {
	t.Helper()
	server, client := etcdtest.StartWith(t, func(config *embed.Config) {
		config.QuotaBackendBytes = quota
		config.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainUnaryInterceptor(interceptors...)}
	})
	return server, client, client.Endpoints()[0]
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}
