package hosted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

// store is an etcd with the control planes of a host: one in this process, or
// another one.
type store struct {
	client *clientv3.Client
	// clients configures further clients.
	clients clientv3.Config
	ledger  *quota.Ledger
	feed    *feed.Feed
	// floors are those of control planes that have come from other stores; nil
	// for an etcd in this process.
	floors *transfer.Floors
	// server is the etcd in this process, or nil. Accounts are those of the
	// ledger with another one.
	server   *embed.Etcd
	accounts *quota.Accounts
	// followers and keeper run beside the etcd. The followers read its revisions.
	followers []func(context.Context) error
	keeper    *quota.Keeper
	// sockets is a temporary directory to delete at the end, if one was
	// necessary.
	sockets string
}

// connect returns a new client of the etcd.
func (s *store) connect() (*clientv3.Client, error) {
	client, err := clientv3.New(s.clients)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", s.endpoints(), err)
	}
	if s.server != nil {
		readInProcess(client, s.server.Server)
	}
	return client, nil
}

func (s *store) endpoints() string { return strings.Join(s.clients.Endpoints, ",") }

// open prepares the store for a control plane that is about to run. The caller
// calls leave at its end.
func (s *store) open(ctx context.Context, name string) (leave func(), err error) {
	if s.accounts == nil {
		return func() {}, nil
	}
	if err := s.openSide(ctx, name); err != nil {
		return nil, err
	}
	if err := s.accounts.Open(ctx, name); err != nil {
		return nil, err
	}
	return func() {
		s.accounts.Close(name)
		s.floors.Set(name, 0)
	}, nil
}

// openSide fails if the data of the control plane is in another store, and
// remembers since when it is here.
func (s *store) openSide(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, moveRequestTimeout)
	defer cancel()
	state, err := s.side(name).State(ctx)
	switch {
	case err != nil:
		return err
	case state.Sealed:
		return fmt.Errorf("the data of control plane %q is in another store, or on its way there", name)
	}
	s.floors.Set(name, state.Since)
	return nil
}

// ended returns a channel with the error of an etcd in this process that has
// exited.
func (s *store) ended() <-chan error {
	if s.server == nil {
		return nil
	}
	return s.server.Err()
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
	case err := <-s.ended():
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
	if _, err := s.client.Delete(ctx, attemptsRoot+name); err != nil {
		return fmt.Errorf("delete the count of failed starts of control plane %q from etcd: %w", name, err)
	}
	if err := s.side(name).Erase(ctx); err != nil {
		return err
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
