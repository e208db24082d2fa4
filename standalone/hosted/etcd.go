package hosted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

const (
	etcdStartTimeout = 30 * time.Second
	lockTimeout      = 2 * time.Second
	dataDir          = "data"
	// DefaultStoreBytes is the maximum size of etcd's file. Objects may use
	// capacityPercent of it, since pages and old revisions take space too.
	DefaultStoreBytes = 8 << 30
	leastStoreBytes   = 1 << 20
	capacityPercent   = 60
	// maxSupersededPercent of it may be old revisions.
	maxSupersededPercent = 5
	snapshotEntries      = 100
	percent              = 100
	// maxSocketPath is below the limit of every system.
	maxSocketPath = 100
)

// startStore starts etcd. It listens on a Unix socket in a private directory,
// because a process that can reach etcd can read the Secrets of every tenant.
func startStore(ctx context.Context, dir string, opts Options) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of etcd: %w", err)
	}
	if err := checkUnused(filepath.Join(dir, dataDir)); err != nil {
		return nil, err
	}
	s := &store{ledger: quota.NewLedger(keyspace.Root, opts.StoreBytes/percent*capacityPercent)}
	socket, err := s.socketPath(dir)
	if err != nil {
		return nil, err
	}
	endpoint := "unix://" + socket
	s.clients = clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: etcdStartTimeout, Logger: zap.NewNop()}
	if s.server, err = embed.StartEtcd(s.config(dir, socket, opts)); err != nil {
		return nil, errors.Join(fmt.Errorf("start etcd in %s: %w", dir, err), s.stop())
	}
	if err := s.awaitReady(ctx, dir); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if s.client, err = s.connect(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	follow, err := quota.Follow(s.ledger, s.server.Server.KV(), s.server.Server.Backend())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read etcd's records in %s: %w", dir, err), s.stop())
	}
	if s.feed, err = feed.New(ctx, feed.Embedded(s.server.Server.KV())); err != nil {
		return nil, errors.Join(fmt.Errorf("follow etcd's records in %s: %w", dir, err), s.stop())
	}
	s.followers = []func(context.Context) error{follow, s.feed.Run}
	s.keeper = &quota.Keeper{
		History: s.ledger.History, Client: s.client, Endpoints: s.clients.Endpoints, Log: opts.Log,
		Quota: opts.StoreBytes, MaxSuperseded: opts.StoreBytes / percent * maxSupersededPercent,
	}
	return s, nil
}

// checkUnused returns an error if another process uses the data directory. Etcd
// itself would wait for that process to exit, without a limit.
func checkUnused(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, ReadOnly: true})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("another process uses etcd's data in %s: stop it, or choose another directory", dir)
	}
	if err != nil {
		return fmt.Errorf("check etcd's data in %s: %w", dir, err)
	}
	return db.Close()
}

// socketPath returns a path in the data directory, or in a temporary one if
// that path is too long for a socket.
func (s *store) socketPath(dir string) (string, error) {
	const name = "client.sock"
	abs, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil || len(abs) <= maxSocketPath {
		return abs, err
	}
	if s.sockets, err = os.MkdirTemp("", "vc-etcd-"); err != nil {
		return "", fmt.Errorf("create a directory for etcd's socket: %w", err)
	}
	return filepath.Join(s.sockets, name), nil
}

func (s *store) config(dir, socket string, opts Options) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, dataDir)
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	// A single member has no peers, so it needs no peer listener.
	cfg.ListenPeerUrls = nil
	cfg.QuotaBackendBytes = opts.StoreBytes
	cfg.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainUnaryInterceptor(quota.Guard(s.ledger))}
	cfg.EnableGRPCGateway = false
	// All entries since the last snapshot are kept in memory, and are as large
	// as objects. No other member needs older ones.
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = snapshotEntries, 1
	cfg.UnsafeNoFsync = opts.UnsafeNoFsync
	cfg.LogLevel = "error"
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	return cfg
}

func (s *store) awaitReady(ctx context.Context, dir string) error {
	timeout := time.NewTimer(etcdStartTimeout)
	defer timeout.Stop()
	select {
	case <-s.server.Server.ReadyNotify():
		return nil
	case err := <-s.server.Err():
		return fmt.Errorf("start etcd in %s: %w", dir, err)
	case <-timeout.C:
		return fmt.Errorf("etcd in %s is not ready after %s: check the disk and the load of this machine", dir, etcdStartTimeout)
	case <-ctx.Done():
		return fmt.Errorf("start etcd in %s: %w", dir, context.Cause(ctx))
	}
}
