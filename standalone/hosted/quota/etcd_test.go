package quota

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// startEtcd starts an etcd whose unary requests pass the interceptors, and
// returns it with a client and its endpoint.
func startEtcd(t *testing.T, quota int64, interceptors ...grpc.UnaryServerInterceptor) (*embed.Etcd, *clientv3.Client, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := embed.NewConfig()
	config.Dir, config.QuotaBackendBytes, config.ZapLoggerBuilder = dir, quota, embed.NewZapLoggerBuilder(zap.NewNop())
	config.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainUnaryInterceptor(interceptors...)}
	socket := url.URL{Scheme: "unix", Path: filepath.Join(dir, "c")}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{socket}, nil
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{socket.String()}, DialTimeout: time.Minute, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server, client, socket.String()
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
