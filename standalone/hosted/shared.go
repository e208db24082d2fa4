package hosted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// sharedChain is the handler chain of a host for all control planes that share
// one. It exists from the first of them on.
type sharedChain struct {
	store    *store
	observer Observer
	log      logr.Logger
	// newContext returns a context that does not end with the host, but with
	// stop: the chain is used until the last control plane has stopped.
	newContext func() (context.Context, context.CancelFunc)

	mu     sync.Mutex // guards all below
	client *clientv3.Client
	chain  *chain.Chain
	// changes tells the controllers of control planes what has changed.
	changes *controllers.Changes
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Observer observes the control planes that share a handler chain.
type Observer interface {
	// Observe observes the client of etcd of all of them.
	Observe(client *clientv3.Client)
	// Attribute returns a handler that serves the requests of one of them.
	Attribute(name string, handler http.Handler) http.Handler
}

// trimInterval is the time after which objects that an idle control plane does
// not read are freed. Requests read roles, for example.
const trimInterval = 5 * time.Minute

// get returns the chain, and what has changed in its etcd. A failed start is
// repeated at the next call.
func (s *sharedChain) get() (*chain.Chain, *controllers.Changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chain == nil {
		if err := s.start(); err != nil {
			return nil, nil, err
		}
	}
	return s.chain, s.changes, nil
}

// prepare builds what the first control plane would wait for, which builds it
// itself if that fails.
func (s *sharedChain) prepare() {
	defer func() { // upstream panics if it cannot build a part
		if reason := recover(); reason != nil {
			s.log.Error(fmt.Errorf("%v", reason), "Failed to prepare the shared handler chain")
		}
	}()
	prepared, _, err := s.get()
	if err == nil {
		err = prepared.Prepare()
	}
	if err != nil {
		s.log.Error(err, "Failed to prepare the shared handler chain")
	}
}

func (s *sharedChain) start() error {
	client, err := s.store.connect()
	if err != nil {
		return err
	}
	readInProcess(client, s.store.server.Server)
	if s.observer != nil {
		s.observer.Observe(client)
	}
	ctx, cancel := s.newContext()
	started, err := chain.New(ctx, chain.Options{
		Store: keyspace.Confine(client), Feed: s.store.feed, OnFailure: s.report,
		Decorate: func(inner storage.Interface, resource schema.GroupResource) storage.Interface {
			return explainedStorage{Interface: inner, resource: resource}
		},
	})
	if err != nil {
		cancel()
		_ = client.Close()
		return fmt.Errorf("build the shared handler chain: %w", err)
	}
	s.chain, s.client, s.cancel = started, client, cancel
	s.changes = controllers.NewChanges(s.store.feed)
	s.running.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { started.Trim() }, trimInterval) })
	return nil
}

// report logs the failure of a part of a control plane, a panic with its stack.
func (s *sharedChain) report(tenant string, err error) {
	log := s.log.WithValues("controlPlane", tenant)
	if panicked, ok := errors.AsType[*views.PanicError](err); ok {
		log = log.WithValues("stack", string(panicked.Stack))
	}
	log.Error(err, "A part of a control plane failed")
}

// stop stops the chain. No control plane uses it any more.
func (s *sharedChain) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chain == nil {
		return
	}
	s.changes.Close()
	s.cancel()
	s.running.Wait()
	_ = s.client.Close()
	s.chain = nil
}

// startShared serves the apiserver of a control plane with the host's chain.
func startShared(ctx context.Context, c *ControlPlane) (*apiServer, error) {
	shared, changes, err := c.shared.get()
	if err != nil {
		return nil, err
	}
	spec, err := c.chainSpec()
	if err != nil {
		return nil, err
	}
	tenant, err := shared.Add(spec)
	if err != nil {
		return nil, err
	}
	s := &apiServer{
		loopback: unlimited(tenant.Config()), informers: tenant.Views().NewFactory(), client: tenant.Client(),
		bootstrap: newBootstrap("bootstrap", func(ctx context.Context) error { return shared.Bootstrap(ctx, tenant) }),
		views:     tenant.Views(), changes: changes,
		done: make(chan struct{}),
	}
	s.start(ctx, func(ctx context.Context) error {
		defer shared.Remove(tenant)
		return shared.Serve(ctx, tenant, c.inlet, c.creds.CurrentCertKeyContent)
	})
	return s, nil
}

// chainSpec returns the control plane as a tenant of the chain.
func (c *ControlPlane) chainSpec() (chain.Spec, error) {
	_, services, err := net.ParseCIDR(c.spec.ServiceCIDR)
	if err != nil {
		return chain.Spec{}, fmt.Errorf("parse the service CIDR: %w", err)
	}
	spec := chain.Spec{
		Name: c.spec.Name, ClusterDomain: c.spec.ClusterDomain, ServiceCIDR: *services,
		ClientCA: c.creds.authority.CertPEM, SigningKey: c.creds.signingKey,
		KubeletCA: c.spec.KubeletCA, KubeletClient: c.creds.kubeletCertKey, KubeletsByHostname: c.spec.SeparateKubeletClientCA,
		FrontProxyCA: c.creds.frontProxy.CertPEM, FrontProxyClient: c.creds.frontProxyCertKey,
		Network: c.spec.Network, Filter: c.limitShared, Wrap: c.wrapShared,
	}
	if c.podAddress != nil {
		spec.Endpoint, _ = c.inlet.Addr().(*net.TCPAddr)
	}
	return spec, nil
}

// wrapShared wraps what serves authorized requests, and hides what concerns the
// process.
func (c *ControlPlane) wrapShared(apis http.Handler) http.Handler {
	if !c.spec.Diagnostics {
		apis = withOwnPathsOnly(apis)
	}
	return c.wrapAPIs(apis)
}

// limitShared limits the requests that the tenant has in flight.
func (c *ControlPlane) limitShared(handler http.Handler, config *genericapiserver.Config) http.Handler {
	handler = c.filter(config).Wrap(handler)
	if c.shared.observer != nil {
		handler = c.shared.observer.Attribute(c.Name(), handler)
	}
	return handler
}
