package hosted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
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
	// defaultStoreBytes is the maximum size of etcd's file. Objects may use
	// capacityPercent of it, since pages and old revisions take space too.
	defaultStoreBytes = 8 << 30
	leastStoreBytes   = 1 << 20
	capacityPercent   = 60
	// maxSupersededPercent of it may be old revisions.
	maxSupersededPercent = 5
	snapshotEntries      = 100
	maxTxnOps            = 1024
	percent              = 100
	// maxSocketPath is below the limit of every system.
	maxSocketPath = 100
)

// store is the embedded etcd of a host.
type store struct {
	server   *embed.Etcd
	client   *clientv3.Client
	endpoint string
	ledger   *quota.Ledger
	feed     *feed.Feed
	// followers and keeper run beside etcd. The followers read its revisions.
	followers []func(context.Context) error
	keeper    *quota.Keeper
	// sockets is a temporary directory to delete at the end, if one was
	// necessary.
	sockets string
}

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
	s.endpoint = "unix://" + socket
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
		Ledger: s.ledger, Client: s.client, Endpoint: s.endpoint, Log: opts.Log,
		Quota: opts.StoreBytes, MaxSuperseded: opts.StoreBytes / percent * maxSupersededPercent,
	}
	return s, nil
}

// connect returns a new client of etcd.
func (s *store) connect() (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, DialTimeout: etcdStartTimeout, Logger: zap.NewNop()})
	return client, wrapf(err, "connect to etcd at %s", s.endpoint)
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
	// The objects of a new cluster are written in one transaction.
	cfg.MaxTxnOps = maxTxnOps
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

// run keeps the store usable until ctx ends, which is not an error, or etcd
// fails.
func (s *store) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	lost := make(chan error, len(s.followers))
	for _, follow := range s.followers {
		beside.Go(func() { lost <- follow(ctx) })
	}
	beside.Go(func() { s.keeper.Run(ctx) })
	select {
	case err := <-s.server.Err():
		return fmt.Errorf("etcd exited by itself: %w", err)
	case err := <-lost:
		return wrapf(err, "follow etcd's revisions")
	case <-ctx.Done():
		return nil
	}
}

// wipe deletes all keys of a control plane.
func (s *store) wipe(ctx context.Context, name string) error {
	if _, err := s.client.Delete(ctx, keyspace.Prefix(name)+"/", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("delete the data of control plane %q from etcd: %w", name, err)
	}
	s.ledger.Forget(name)
	return nil
}

func (s *store) stop() error {
	var errs []error
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.server != nil {
		s.server.Close()
	}
	if s.sockets != "" {
		errs = append(errs, os.RemoveAll(s.sockets))
	}
	return errors.Join(errs...)
}
