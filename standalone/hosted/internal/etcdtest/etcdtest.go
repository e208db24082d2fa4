// Package etcdtest starts etcds for tests.
package etcdtest

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
)

// Start starts an etcd until the test has ended, and returns what it stores
// with a client.
func Start(tb testing.TB) (mvcc.WatchableKV, *clientv3.Client) {
	tb.Helper()
	server, client := StartWith(tb, func(*embed.Config) {})
	return server.Server.KV(), client
}

// StartWith starts an etcd with a configuration that the function changes, and
// returns it with a client.
func StartWith(tb testing.TB, configure func(*embed.Config)) (*embed.Etcd, *clientv3.Client) {
	tb.Helper()
	server, client, stop, err := Launch(configure)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return server, client
}

// Launch starts an etcd that several tests share, until stop is called.
func Launch(configure func(*embed.Config)) (server *embed.Etcd, client *clientv3.Client, stop func(), err error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.ZapLoggerBuilder = dir, "error", embed.NewZapLoggerBuilder(zap.NewNop())
	config.UnsafeNoFsync = true
	socket := url.URL{Scheme: "unix", Path: filepath.Join(dir, "c")}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{socket}, nil
	configure(config)
	if server, err = embed.StartEtcd(config); err != nil {
		remove()
		return nil, nil, nil, err
	}
	<-server.Server.ReadyNotify()
	client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{socket.String()}, DialTimeout: time.Minute, Logger: zap.NewNop(),
	})
	if err != nil {
		server.Close()
		remove()
		return nil, nil, nil, err
	}
	return server, client, func() {
		_ = client.Close()
		server.Close()
		remove()
	}, nil
}
