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
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/discovered"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// trimInterval is the time after which objects that an idle control plane does
// not read are freed. Requests read roles, for example.
const trimInterval = 5 * time.Minute

// chains starts the handler chains of a host: one for all control planes that
// share it, and one for each other control plane.
type chains struct {
	store    *store
	super    *store // that of the super cluster
	observer Observer
	log      logr.Logger
	// changes tells the controllers of control planes what has changed.
	changes *controllers.Changes
	// newContext returns a context that does not end with the host, but with
	// its cancel function: a chain is used until its last control plane has
	// stopped.
	newContext func() (context.Context, context.CancelFunc)
	damages    damages
	// expressions are those that the control planes of the host store.
	expressions *expressions.Accounts

	mu     sync.Mutex // guards shared
	shared *runningChain
}

// Observer observes the control planes that handler chains serve.
type Observer interface {
	// Observe observes a client of etcd: that of all control planes that share a
	// chain, or that of another one.
	Observe(client *clientv3.Client)
	// Attribute returns a handler that serves the requests of one of them.
	Attribute(name string, handler http.Handler) http.Handler
}

// runningChain is a handler chain with its own client of etcd.
type runningChain struct {
	*chain.Chain

	client *clientv3.Client
	// apis are those of its control planes, for their controllers.
	apis    *discovered.Shared
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// of returns the chain of a control plane, which calls release at its end.
func (c *chains) of(spec Spec) (r *runningChain, release func(), err error) {
	if spec.Shared {
		r, err = c.forAll()
		return r, func() {}, err
	}
	if r, err = c.forOne(spec.Name); err != nil {
		return nil, nil, err
	}
	return r, func() { c.end(r) }, nil
}

// forAll returns the shared chain, which exists from the first control plane of
// the host on. A failed start is repeated at the next call.
func (c *chains) forAll() (*runningChain, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared == nil {
		started, err := c.start(keyspace.Confine, nil)
		if err != nil {
			return nil, err
		}
		c.shared = started
	}
	return c.shared, nil
}

// prepare builds what the first control plane would wait for, which builds it
// itself if that fails.
func (c *chains) prepare() {
	defer func() { // upstream panics if it cannot build a part
		if reason := recover(); reason != nil {
			c.log.Error(fmt.Errorf("%v", reason), "Failed to prepare the shared handler chain")
		}
	}()
	prepared, err := c.forAll()
	if err == nil {
		err = prepared.Prepare()
	}
	if err != nil {
		c.log.Error(err, "Failed to prepare the shared handler chain")
	}
}

// forOne returns a new chain for one control plane. Its client of etcd reaches
// nothing else. The shared chain has what is the same for all.
func (c *chains) forOne(name string) (*runningChain, error) {
	shared, err := c.forAll()
	if err != nil {
		return nil, err
	}
	return c.start(func(client *clientv3.Client) *kubernetes.Client { return keyspace.ConfineTo(client, name) }, shared.Chain)
}

func (c *chains) start(confine func(*clientv3.Client) *kubernetes.Client, like *chain.Chain) (*runningChain, error) {
	client, err := c.store.connect()
	if err != nil {
		return nil, err
	}
	if c.store.floors != nil {
		transfer.Guard(client, c.store.floors)
	}
	if c.observer != nil {
		c.observer.Observe(client)
	}
	ctx, cancel := c.newContext()
	started, err := chain.New(ctx, chain.Options{
		Store: bounded(confine(client)), Feed: c.store.feed, OnFailure: c.report, Like: like,
		Decorate: c.decorate,
	})
	c.super.reportSize()
	if err != nil {
		cancel()
		_ = client.Close()
		return nil, fmt.Errorf("build a handler chain: %w", err)
	}
	r := &runningChain{Chain: started, client: client, apis: discovered.NewShared(), cancel: cancel}
	r.running.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { started.Trim() }, trimInterval) })
	return r, nil
}

// decorate wraps the storage of a resource.
func (c *chains) decorate(inner storage.Interface, resource schema.GroupResource) storage.Interface {
	if _, counts := withExpressions()[resource]; counts {
		inner = countedStorage{Interface: inner, resource: resource, accounts: c.expressions}
	}
	return explainedStorage{Interface: inner, resource: resource}
}

// bounded bounds what the watches of a client read.
func bounded(client *kubernetes.Client) *kubernetes.Client {
	inflight.Bound(client.Client)
	return client
}

// report logs the failure of a part of a control plane, a panic with its stack,
// and remembers a damaged object.
func (c *chains) report(tenant string, err error) {
	if damage, ok := errors.AsType[*views.DecodeError](err); ok {
		c.damages.add(tenant, damage)
	}
	log := c.log.WithValues("controlPlane", tenant)
	if panicked, ok := errors.AsType[*views.PanicError](err); ok {
		log = log.WithValues("stack", string(panicked.Stack))
	}
	log.Error(err, "A part of a control plane failed")
}

// stop stops the shared chain. No control plane uses it any more.
func (c *chains) stop() {
	c.changes.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shared != nil {
		c.end(c.shared)
		c.shared = nil
	}
}

// end stops a chain, which serves no control plane any more.
func (c *chains) end(r *runningChain) {
	r.cancel()
	r.running.Wait()
	if err := errors.Join(r.Wait(), r.client.Close()); err != nil {
		c.log.Error(err, "A handler chain did not stop cleanly")
	}
}

// startTenant serves the apiserver of a control plane with a handler chain.
func startTenant(ctx context.Context, c *ControlPlane) (*apiServer, error) {
	spec, err := c.chainSpec()
	if err != nil {
		return nil, err
	}
	leave, err := c.chains.store.open(ctx, c.spec.Name)
	if err != nil {
		return nil, err
	}
	served, release, err := c.chains.of(c.spec)
	if err != nil {
		leave()
		return nil, err
	}
	tenant, err := served.Add(spec)
	if err != nil {
		release()
		leave()
		return nil, err
	}
	s := &apiServer{
		loopback: unlimited(tenant.Config()), informers: tenant.Views().NewFactory(), client: tenant.Client(),
		bootstrap: newBootstrap("bootstrap", func(ctx context.Context) error { return served.Bootstrap(ctx, tenant) }),
		views:     tenant.Views(), apis: served.apis, handler: served.Handler(tenant),
		done: make(chan struct{}),
	}
	s.start(ctx, func(ctx context.Context) error {
		defer leave()
		defer release()
		defer c.chains.damages.forget(c.spec.Name)
		defer served.Remove(tenant)
		return served.Serve(ctx, tenant, draining{c.inlet}, c.creds.CurrentCertKeyContent)
	})
	return s, nil
}

// chainSpec returns the control plane as a tenant of a chain.
func (c *ControlPlane) chainSpec() (chain.Spec, error) {
	services, err := c.spec.serviceCIDRs()
	if err != nil {
		return chain.Spec{}, err
	}
	spec := chain.Spec{
		Name: c.spec.Name, ClusterDomain: c.spec.ClusterDomain, Issuer: c.spec.ServiceAccountIssuer, ServiceCIDRs: services,
		ClientCA: c.creds.authority.CertPEM, SigningKey: c.creds.signingKey,
		KubeletCA: c.spec.KubeletCA, KubeletClient: c.creds.kubeletCertKey, KubeletsByHostname: c.spec.SeparateKubeletClientCA,
		FrontProxyCA: c.creds.frontProxy.CertPEM, FrontProxyClient: c.creds.frontProxyCertKey,
		GatewayCA: c.creds.gateway.CertsPEM(),
		Network:   c.spec.Network, Admission: c.spec.admission(), NoDaemonSets: !c.spec.DaemonSets,
		Filter: c.limit, Wrap: c.wrapOwn,
	}
	if c.podAddress != nil {
		spec.Endpoint, _ = c.inlet.Addr().(*net.TCPAddr)
	}
	return spec, nil
}

// wrapOwn wraps what serves authorized requests, and hides what concerns the
// process.
func (c *ControlPlane) wrapOwn(apis http.Handler) http.Handler {
	return c.wrapAPIs(withOwnPathsOnly(apis))
}

// limit limits the requests that the tenant has in flight.
func (c *ControlPlane) limit(handler http.Handler, config *genericapiserver.Config) http.Handler {
	handler = c.filter(config).Wrap(handler)
	if c.chains.observer != nil {
		handler = c.chains.observer.Attribute(c.Name(), handler)
	}
	return handler
}
