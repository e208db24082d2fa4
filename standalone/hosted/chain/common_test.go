package chain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// common is what tests share that run one after the other: an etcd with a chain.
// The first of them starts it.
var common environment

type environment struct {
	start  sync.Once
	err    error    // of the start
	stops  []func() // in the order of the starts
	ended  chan error
	chain  *chain.Chain
	source *feed.Feed
	all    *clientv3.Client

	mu       sync.Mutex // guards all below
	user     testing.TB // the running test; nil between tests
	failures []error    // between tests
}

// use lends the environment to a test. At its end, the tenants are removed with
// all that they have stored.
func (e *environment) use(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	e.start.Do(func() { e.err = e.open() })
	g.Expect(e.err).NotTo(HaveOccurred())
	e.mu.Lock()
	defer e.mu.Unlock()
	g.Expect(e.user).To(BeNil(), "tests that run at the same time cannot share a chain")
	e.user = t
	t.Cleanup(func() {
		e.chain.RemoveTenants()
		_, err := e.all.Delete(context.Background(), "", clientv3.WithFromKey())
		g.Expect(err).NotTo(HaveOccurred())
		e.mu.Lock()
		defer e.mu.Unlock()
		e.user = nil
	})
}

func (e *environment) open() error {
	server, all, stop, err := etcdtest.Launch(func(*embed.Config) {})
	if err != nil {
		return err
	}
	e.all, e.stops = all, append(e.stops, stop)
	ctx, cancel := context.WithCancel(context.Background())
	if e.source, err = feed.New(ctx, feed.Embedded(server.Server.KV())); err != nil {
		cancel()
		return err
	}
	e.ended = make(chan error, 1)
	go func() { e.ended <- e.source.Run(ctx) }()
	e.stops = append(e.stops, func() {
		cancel()
		e.fail(<-e.ended)
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: all.Endpoints(), DialTimeout: later, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	e.stops = append(e.stops, func() { _ = client.Close() })
	e.chain, err = chain.New(ctx, chain.Options{Store: keyspace.Confine(client), Feed: e.source, OnFailure: func(tenant string, err error) {
		e.fail(fmt.Errorf("tenant %s: %w", tenant, err))
	}})
	return err
}

// fail has the running test fail, or the package if none runs.
func (e *environment) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
	case e.user != nil:
		e.user.Error(err)
	default:
		e.failures = append(e.failures, err)
	}
}

// close ends what has been started, and returns what failed between tests.
func (e *environment) close() error {
	for _, stop := range slices.Backward(e.stops) {
		stop()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.failures...)
}
