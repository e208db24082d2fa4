package hosted

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

// RemoteStore is an etcd in other processes, which several hosts may use. It is
// accessible to hosts alone: who reaches it can read the Secrets of every
// tenant.
type RemoteStore struct {
	// Endpoints are the client URLs of all members.
	Endpoints []string
	// TLS verifies the members, and has the certificate of the host. It is nil
	// for Unix sockets only.
	TLS *tls.Config
	// Bytes is the quota of etcd (--quota-backend-bytes); 8 GiB by default.
	Bytes int64
}

// connectStore connects to an etcd in other processes, until ctx ends.
func connectStore(ctx context.Context, remote RemoteStore, log logr.Logger) (*store, error) {
	if len(remote.Endpoints) == 0 {
		return nil, errors.New("a remote store needs endpoints")
	}
	bytes := cmp.Or(remote.Bytes, DefaultStoreBytes)
	s := &store{ledger: quota.NewLedger(keyspace.Root, bytes/percent*capacityPercent), floors: transfer.NewFloors()}
	s.clients = clientv3.Config{
		Endpoints: remote.Endpoints, TLS: remote.TLS, DialTimeout: etcdStartTimeout, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(explainStopping, quota.GuardClient(s.ledger))},
	}
	var err error
	if s.client, err = s.connect(); err != nil {
		return nil, err
	}
	if err := s.awaitRemote(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	etcd := feed.Remote(s.client)
	if s.feed, err = feed.New(context.WithoutCancel(ctx), etcd); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.accounts = quota.NewAccounts(s.ledger, etcd, log)
	s.feed.AddTap(s.accounts)
	s.followers = []func(context.Context) error{s.feed.Run, func(ctx context.Context) error {
		s.accounts.Run(ctx)
		return nil
	}}
	s.keeper = &quota.Keeper{
		History: s.history, Client: s.client, Endpoints: remote.Endpoints, Log: log, Quota: bytes, MaxSuperseded: bytes,
	}
	return s, nil
}

// awaitRemote returns when a member has responded.
func (s *store) awaitRemote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, etcdStartTimeout)
	defer cancel()
	_, _, err := s.history(ctx)
	return wrapf(err, "connect to etcd at %s: check its address, and the certificates", s.endpoints())
}

// history returns the revision of a remote store, and updates its size. The
// size of old revisions is not known: they are compacted by their age.
func (s *store) history(ctx context.Context) (superseded, revision int64, err error) {
	status, err := quota.StatusOf(ctx, s.client, s.clients.Endpoints)
	if err != nil {
		return 0, 0, fmt.Errorf("read the size of etcd: %w", err)
	}
	s.ledger.SetTotal(status.DbSizeInUse)
	return 0, status.Header.Revision, nil
}
