package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/internal/cardinality"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/stream"
)

const defaultListen = "127.0.0.1"

// Options configures a Host. It needs a Dir, or a Store and Keys.
type Options struct {
	// Dir is the directory of all persistent data: etcd's data under "etcd"
	// (the tenants' under "etcd-tenants" if there is a super cluster) and each
	// control plane's PKI under "controlplanes/<name>/pki".
	Dir string
	// Keys has the keys of control planes, instead of Dir; not for a host with a
	// super cluster.
	Keys Keyring
	// Listen is the IP address of the TLS port; 127.0.0.1 by default.
	Listen string
	// Advertise is the host name or IP address of the port for clients; Listen
	// by default, or 127.0.0.1 if Listen means every address.
	Advertise string
	// PodAddress is an IP address of this machine that pods of the super
	// cluster can reach. Each control plane has a port of its own there, which
	// is the endpoint of its kubernetes Service: clients in pods send no server
	// name. It stays open while the control plane sleeps, and has the same number
	// after a restart of the host if it has a Dir and the port is free. Without a
	// PodAddress, no pod can reach its apiserver.
	PodAddress net.IP
	// PodPorts are the ports there; any by default.
	PodPorts PortRange
	// Port is the number of the TLS port. Zero picks a free one, which
	// invalidates every kubeconfig at the next start.
	Port int
	// AdvertisePort is the number of the port for clients; Port by default.
	AdvertisePort int
	// Domain is a DNS domain below which each control plane has a name of its own
	// for clients, at DomainPort (443 by default); empty for none. It needs a
	// Router that knows these names.
	Domain     string
	DomainPort int
	// Internal is the host and port at which clients inside the super cluster
	// reach all control planes; those of Advertise if empty.
	Internal string
	// Router is a port that this host shares with others, instead of one of its
	// own at Listen and Port. It needs an Advertise.
	Router *Router
	// Default names the control plane for connections without a server name, or
	// with one that is not of this host.
	Default string
	// Super names the control plane of the super cluster, which has an etcd of
	// its own. If empty, all control planes share one.
	Super string
	// PrepareShared builds the shared handler chain when the host starts. It is
	// otherwise built with the first control plane that shares it, which waits
	// for seconds.
	PrepareShared bool
	// StoreBytes is the maximum size of the file of an etcd; 8 GiB by default.
	StoreBytes int64
	// Store is an etcd in other processes to use instead of one in this process;
	// not for a host with a super cluster.
	Store *RemoteStore
	// Metrics receives the storage metrics of the control planes; nil for none.
	Metrics prometheus.Registerer
	// Guard has the writes of controllers fail while another host may run them; nil
	// if there is no other host.
	Guard func(*rest.Config)
	// Observer observes the control planes that share a handler chain, for tests;
	// nil for none.
	Observer Observer
	// Discovery is the interval at which garbage collection and quota discover
	// custom resources, for tests; 30 s when zero.
	Discovery time.Duration
	// UnsafeNoFsync disables fsync in etcd. A crash of the machine may then
	// lose data: for tests and throw-away demos only.
	UnsafeNoFsync bool
	// Log is the logger of the host itself. Kubernetes code logs through klog,
	// which is global to the process.
	Log logr.Logger
}

// Host runs control planes behind one port.
type Host struct {
	opts   Options
	stores *stores
	chains *chains
	router *router
	// pods are the ports for pods.
	pods  *podListeners
	turns *turns
	// requests has the requests in flight of all control planes.
	requests *inflight.Host
	// expressions are those that all control planes store.
	expressions *expressions.Accounts

	// newContext returns a context for a control plane, which ends with the
	// host.
	newContext func() (context.Context, context.CancelFunc)
	cancel     context.CancelFunc
	done       chan struct{}
	err        error // set before done is closed

	mu       sync.Mutex
	stopping bool
	planes   map[string]*ControlPlane
	deleting map[string]int // how many deletions of a name are under way
	running  sync.WaitGroup
}

// Start starts etcd and the port, with data in the given directory. Run adds
// control planes. All of it stops when ctx ends, or with Stop.
//
// Start sets utilruntime.ReallyCrash to false for the process, so that a panic
// in a goroutine of one control plane does not crash the others. The caller
// sets klog.OsExit for the same purpose, with [ContainExit]. Start also turns
// off feature gates of the process, see [chain.DisableFeatures], and limits the
// labels of its metrics, see [cardinality.Enforce].
func Start(ctx context.Context, opts Options) (*Host, error) {
	listen, err := opts.complete()
	if err != nil {
		return nil, err
	}
	containPanics()
	cardinality.Enforce()
	if err := chain.DisableFeatures(); err != nil {
		return nil, err
	}
	h := newHost(opts)
	if err := h.listen(listen); err != nil {
		return nil, err
	}
	if h.stores, err = startStores(ctx, opts); err != nil {
		h.close()
		return nil, err
	}
	if err := h.registerMetrics(); err != nil {
		h.close()
		return nil, errors.Join(err, h.stores.stop())
	}
	h.serve(ctx)
	return h, nil
}

// listen opens the port, unless others have.
func (h *Host) listen(ip net.IP) (err error) {
	if h.opts.Router != nil {
		h.router = h.opts.Router.router
		return nil
	}
	h.router, err = listenRouter(ip, h.opts.Port, h.opts.Default, h.opts.Keys)
	return err
}

// close closes the port, unless others use it.
func (h *Host) close() {
	if h.opts.Router == nil {
		h.router.stop()
	}
}

// containPanics sets a variable of the process, once: another host may be
// running.
var containPanics = sync.OnceFunc(func() { utilruntime.ReallyCrash = false })

// newHost returns a host without its port and its etcds.
func newHost(opts Options) *Host {
	return &Host{
		requests:    inflight.NewHost(),
		expressions: expressions.NewAccounts(),
		opts:        opts,
		turns:       newTurns(max(2, runtime.GOMAXPROCS(0))),
		done:        make(chan struct{}),
		planes:      map[string]*ControlPlane{},
		deleting:    map[string]int{},
	}
}

// serve lets control planes run until ctx ends.
func (h *Host) serve(ctx context.Context) {
	h.chains = &chains{
		store: h.stores.tenants, super: h.stores.super, observer: h.opts.Observer, log: h.opts.Log,
		expressions: h.expressions,
		changes:     controllers.NewChanges(h.stores.tenants.feed),
		newContext:  func() (context.Context, context.CancelFunc) { return context.WithCancel(context.WithoutCancel(ctx)) },
	}
	ctx, h.cancel = context.WithCancel(ctx)
	h.newContext = func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	h.pods = newPodListeners(ctx, h.opts, h.router)
	if h.opts.PrepareShared {
		h.running.Go(h.chains.prepare)
	}
	if h.opts.Router == nil {
		h.router.start(ctx)
	}
	h.running.Go(func() { h.requests.Watch(ctx, inflight.ReadMemory, h.opts.Log) })
	go h.supervise(ctx) // stops with the host, which closes Done
}

// collectors returns the metrics of the tenants' store, of all requests, and of
// certificates.
func (h *Host) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		quota.NewCollector(h.stores.tenants.ledger), inflight.NewCollector(h.requests), expressions.NewCollector(h.expressions),
		newExpiryCollector(h.expiries),
	}
}

func (h *Host) registerMetrics() error {
	if h.opts.Metrics == nil {
		return nil
	}
	for _, collector := range h.collectors() {
		if err := h.opts.Metrics.Register(collector); err != nil {
			h.unregisterMetrics()
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

func (h *Host) unregisterMetrics() {
	if h.opts.Metrics == nil {
		return
	}
	for _, collector := range h.collectors() {
		h.opts.Metrics.Unregister(collector)
	}
}

// Usage returns what a control plane stores.
func (h *Host) Usage(name string) quota.Usage { return h.stores.of(name).ledger.Usage(name) }

// complete sets defaults and returns the address to listen on.
func (o *Options) complete() (net.IP, error) {
	if o.Dir == "" && (o.Store == nil || o.Keys == nil) {
		return nil, errors.New("a host needs a directory to keep its data in, or a remote store and a keyring")
	}
	remote := o.Store != nil || o.Keys != nil
	if o.Keys == nil {
		o.Keys = directories{filepath.Join(o.Dir, "controlplanes")}
	}
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	o.StoreBytes = cmp.Or(o.StoreBytes, DefaultStoreBytes)
	ip := net.ParseIP(o.Listen)
	switch {
	case ip == nil:
		return nil, fmt.Errorf("cannot listen on %q: it is not an IP address", o.Listen)
	case remote && o.Super != "":
		return nil, errors.New("a host with a super cluster has etcds and keys of its own: it cannot use a remote store, nor another keyring")
	case o.Router == nil && o.Domain != "":
		return nil, errors.New("a host needs a router that knows the names below a domain")
	case o.Router != nil && o.Advertise == "":
		return nil, errors.New("a host whose port others use, too, needs an address for clients")
	case o.StoreBytes < leastStoreBytes:
		return nil, fmt.Errorf("a store of %d bytes is too small: it needs %d at least", o.StoreBytes, leastStoreBytes)
	case o.Advertise == "" && ip.IsUnspecified():
		o.Advertise = defaultListen
	case o.Advertise == "":
		o.Advertise = o.Listen
	}
	return ip, nil
}

// Address returns the host:port of all control planes for clients.
func (h *Host) Address() string {
	if h.opts.AdvertisePort != 0 {
		return net.JoinHostPort(h.opts.Advertise, strconv.Itoa(h.opts.AdvertisePort))
	}
	return net.JoinHostPort(h.opts.Advertise, h.router.port())
}

// Run starts a control plane in the background and returns at once. It reuses
// the PKI and data of an earlier run. The name must not be running; a control
// plane that has stopped can be run again.
func (h *Host) Run(spec Spec) (*ControlPlane, error) {
	spec = spec.withDefaults(h.defaultServiceCIDR())
	// A handler chain stores in the tenants' etcd.
	spec.Stock = spec.Stock || h.opts.Super != "" && spec.Name == h.opts.Super
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if err := h.checkFamily(spec); err != nil {
		return nil, err
	}
	if _, onDisk := h.opts.Keys.(directories); spec.Stock && !onDisk {
		return nil, fmt.Errorf("control plane %q: upstream's kube-apiserver needs its keys on disk", spec.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.admit(spec.Name); err != nil {
		return nil, err
	}
	c, err := h.newControlPlane(spec)
	if err != nil {
		return nil, fmt.Errorf("control plane %q: %w", spec.Name, err)
	}
	c.awake = func() { h.router.sleepers.remove(c.ServerName()) }
	c.closeRoute = func() { h.router.remove(c.Name(), c.inlet) }
	ctx, cancel := h.newContext()
	c.cancel = cancel
	h.planes[spec.Name] = c
	h.running.Go(func() { h.runPlane(ctx, c) })
	return c, nil
}

// admit returns an error if a control plane of that name cannot run now.
func (h *Host) admit(name string) error {
	_, runs := h.planes[name]
	switch {
	case h.stopping:
		return fmt.Errorf("control plane %q cannot run: the host is stopping", name)
	case h.deleting[name] > 0:
		return fmt.Errorf("control plane %q cannot run: it is being deleted", name)
	case runs:
		return fmt.Errorf("control plane %q runs already: stop it first", name)
	}
	return nil
}

func (h *Host) newControlPlane(spec Spec) (*ControlPlane, error) {
	hosts := h.clientHosts(spec.Name)
	dnsNames, ips, err := spec.servingNames(hosts...)
	if err != nil {
		return nil, err
	}
	in, err := h.newInlet(spec)
	if err != nil {
		return nil, err
	}
	own := h.stores.of(spec.Name)
	own.ledger.SetLimits(spec.Name, spec.Limits)
	c := &ControlPlane{
		spec: spec, keyring: h.opts.Keys, hosts: hosts, renamed: make(chan struct{}, 1), inlet: in, podAddress: h.opts.PodAddress,
		outside: h.outside(spec.Name), inside: h.inside(spec.Name), etcd: own.endpoints(), chains: h.chains, turns: h.turns,
		attempts: attemptsIn(own.client, spec.Name),
		ledger:   own.ledger, discovery: h.opts.Discovery, expressions: newExpressions(own, spec),
		requests: h.requests.Add(spec.Name, inflight.Config{
			Limits: spec.Requests, Protected: spec.Name == h.opts.Super, Stored: func() inflight.Stored {
				return inflight.Stored{Bytes: own.ledger.Usage(spec.Name).Bytes, Largest: own.ledger.Largest(spec.Name)}
			},
		}),
		ready: make(chan struct{}), done: make(chan struct{}),
		duty: newDuty(), guard: h.opts.Guard,
	}
	if !spec.Stock { // upstream's kube-apiserver does not count them
		h.expressions.Add(c.expressions)
	}
	c.serving.Store(&servingNames{dnsNames, ips})
	c.activity = &activity{isPlatform: c.isPlatform}
	c.changes = stream.Endpoint{Feed: own.feed, Tenant: spec.Name, IsPlatform: c.isPlatform, Failed: func(err error) {
		h.opts.Log.Error(err, "The platform's watch of a control plane failed", "controlPlane", spec.Name)
	}}
	return c, nil
}

// newInlet returns the inlet of a control plane.
func (h *Host) newInlet(spec Spec) (*inlet, error) {
	if spec.Stock || h.opts.PodAddress == nil {
		return newInlet(h.opts.PodAddress, h.opts.PodPorts)
	}
	address, err := h.pods.listen(spec.Name)
	if err != nil {
		return nil, err
	}
	return newInletAt(address), nil
}

// runPlane runs the control plane until it stops.
func (h *Host) runPlane(ctx context.Context, c *ControlPlane) {
	defer c.cancel()
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.Background(), "controlPlane", c.Name()))
	h.router.add(c.Name(), c.inlet)
	c.err = c.run(ctx)
	h.router.remove(c.Name(), c.inlet)
	if c.err != nil {
		h.opts.Log.Error(c.err, "A control plane exited by itself", "controlPlane", c.Name())
	}
	h.requests.Remove(c.requests)
	h.expressions.Remove(c.expressions)
	h.forget(c) // before done, since the waiter may run it again
	close(c.done)
}

// forget removes a control plane that has stopped. Its port for pods stays open
// if it sleeps, and for a while if another host has taken over.
func (h *Host) forget(c *ControlPlane) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.planes, c.Name())
	switch {
	case h.router.sleepers.sleeps(c.ServerName()):
	case c.retired.Load():
		h.pods.leave(c.Name())
	default:
		h.pods.close(c.Name())
	}
}

// Left returns how many control planes that other hosts have taken over still have
// a port for pods here. They have none after a few seconds.
func (h *Host) Left() int { return h.pods.left() }

// Get returns a control plane that was started with Run and has not stopped.
func (h *Host) Get(name string) (*ControlPlane, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.planes[name]
	return c, ok
}

// Delete stops the control plane if it runs, and deletes its data from etcd and
// its keys. It is not an error if none of it exists.
func (h *Host) Delete(ctx context.Context, name string) error {
	if err := validateName(name); err != nil {
		return err // it must not lead out of the data directory
	}
	defer h.endDelete(name)
	h.CloseRoute(name)
	if c := h.beginDelete(name); c != nil {
		if err := c.Stop(ctx); err != nil {
			return err
		}
	}
	if err := h.stores.of(name).wipe(ctx, name); err != nil {
		return err
	}
	return h.opts.Keys.Delete(ctx, name)
}

// beginDelete reserves the name until endDelete. It returns the running control
// plane of that name, if there is one.
func (h *Host) beginDelete(name string) *ControlPlane {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deleting[name]++
	return h.planes[name]
}

func (h *Host) endDelete(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deleting[name]--; h.deleting[name] == 0 {
		delete(h.deleting, name)
	}
}

// Stop stops all control planes, the port and etcd. The data is kept.
func (h *Host) Stop(ctx context.Context) error {
	h.cancel()
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the host is still stopping: %w", context.Cause(ctx))
	}
}

// Done returns a channel that is closed when the host has stopped for whatever
// reason.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err returns the reason why the host stopped by itself; nil while it runs and
// after Stop.
func (h *Host) Err() error {
	select {
	case <-h.done:
		return h.err
	default:
		return nil
	}
}

// supervise waits for the end of the host and stops its parts in order.
func (h *Host) supervise(ctx context.Context) {
	defer close(h.done)
	keeping, endStores := context.WithCancel(context.WithoutCancel(ctx)) // the last control plane needs them
	stores := make(chan struct{})
	go func() { // ends below
		defer close(stores)
		h.err = h.stores.run(keeping)
	}()
	select {
	case <-stores:
	case <-ctx.Done():
	}
	h.refuse()
	h.running.Wait()
	h.chains.stop()
	h.pods.stop()
	h.close()
	endStores()
	<-stores
	h.unregisterMetrics()
	if err := h.stores.stop(); err != nil {
		h.opts.Log.Error(err, "etcd did not stop cleanly")
	}
}

// refuse stops all control planes and admits no new ones. It waits for a Run in
// progress.
func (h *Host) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
	h.cancel()
}
