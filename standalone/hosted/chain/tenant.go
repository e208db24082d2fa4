package chain

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// Spec describes a tenant of a chain.
type Spec struct {
	// Name identifies the tenant on the chain. Its keys in etcd are those of
	// this name in the keyspace.
	Name string
	// ClusterDomain is the DNS domain of the cluster. It is part of the audience
	// of service account tokens.
	ClusterDomain string
	// Issuer is the issuer of service account tokens; empty for their audience.
	Issuer string
	// ServiceCIDRs are the ranges of ClusterIPs: one, or one of each IP family, of
	// which the first is that of single-stack Services.
	ServiceCIDRs []net.IPNet
	// Endpoint is where pods reach the apiserver; nil if they cannot.
	Endpoint *net.TCPAddr
	// ClientCA verifies client certificates, in PEM.
	ClientCA []byte
	// SigningKey signs service account tokens, in PEM.
	SigningKey []byte
	// KubeletCA verifies what answers in the place of kubelets, in PEM.
	KubeletCA []byte
	// KubeletClient returns the certificate and its key, in PEM, with which the
	// apiserver connects to kubelets. It is renewed from time to time.
	KubeletClient func() (cert, key []byte)
	// KubeletsByHostname connects to kubelets by the host names of their nodes,
	// which a proxy in their place needs, rather than by their addresses.
	KubeletsByHostname bool
	// FrontProxyCA and FrontProxyClient are the same for aggregated APIs: the
	// authority, which is published, and the client certificate.
	FrontProxyCA     []byte
	FrontProxyClient func() (cert, key []byte)
	// GatewayCA verifies the gateway, from which the apiserver takes the users of
	// requests, in PEM; empty for none. It is not published.
	GatewayCA []byte
	// Network dials the connections that users of the apiserver cause; nil for
	// one that connects to nothing.
	Network egress.Network
	// Admission follows upstream's: its plugins see what all of upstream's have
	// changed, and validate what they have admitted. It is initialized as they are.
	Admission []admission.Interface
	// NoDaemonSets has discovery show that DaemonSets cannot be created, which
	// Admission refuses.
	NoDaemonSets bool
	// Wrap wraps what serves a request that is authorized; nil for nothing.
	Wrap func(http.Handler) http.Handler
	// Filter wraps all that serves a request; nil for nothing.
	Filter func(http.Handler, *genericapiserver.Config) http.Handler
}

// Tenant is one control plane of a chain: what upstream keeps in memory about a
// cluster, created when it is first needed.
type Tenant struct {
	spec Spec
	// client sends requests as the control plane itself.
	client *kubernetes.Clientset
	config *rest.Config

	// life ends with stop, which ends all that works for the tenant.
	life context.Context
	stop func()
	// done is closed when the tenant is removed.
	done chan struct{}

	// views are the informers of all parts, each of which has a factory.
	views *views.Views
	// informers is the factory of the parts that serve requests.
	informers informers.SharedInformerFactory

	upkeep        upkeep
	registration  registration
	filters       lazy[http.Handler]
	authenticator lazy[authenticator.Request]
	issuer        lazy[*issuer]
	openID        lazy[http.Handler]
	policy        lazy[*rbac.RBACAuthorizer]
	admission     lazy[admission.Interface]
	services      passing[*services]
	eviction      lazy[*podstore.EvictionREST]
	connections   lazy[*connections]

	extensions  optional[*customResources]
	aggregation optional[*apiAggregator]
	groups      atomic.Pointer[groups] // computed from these
	documents   documentCache
}

func (c *Chain) newTenant(spec Spec) (*Tenant, error) {
	network := newNetwork(spec.Network)
	spec.Network = network
	t := &Tenant{spec: spec, done: make(chan struct{}), config: inProcess(http.HandlerFunc(c.serveTenant), spec.Name)}
	ctx, cancel := context.WithCancel(keyspace.NewContext(context.Background(), spec.Name))
	t.life = ctx
	t.views = views.New(ctx, c.opts.Feed, spec.Name, views.Options{OnFailure: c.opts.OnFailure})
	t.stop = sync.OnceFunc(func() {
		close(t.done)
		network.close()
		cancel()
		t.upkeep.end()
		t.registration.end()
		t.extensions.end()
		t.aggregation.end()
		t.services.close()
		_ = t.views.Close(ctx) // does not wait for handlers
	})
	var err error
	if t.client, err = kubernetes.NewForConfig(t.config); err != nil {
		return nil, fmt.Errorf("create a client of tenant %q: %w", spec.Name, err)
	}
	t.informers = t.views.NewFactory()
	t.upkeep.life = ctx
	t.upkeep.failed = func(err error) { c.report(t, fmt.Errorf("create objects of every cluster again: %w", err)) }
	t.upkeep.repair = func(ctx context.Context) error { return c.Bootstrap(ctx, t) }
	t.registration.life = ctx
	t.registration.failed = func(err error) { c.report(t, fmt.Errorf("register local APIs: %w", err)) }
	t.registration.repair = func(ctx context.Context) error { return c.registerAPIs(ctx, t) }
	c.prepareParts(t)
	return t, nil
}

// prepareParts sets how the parts of a tenant are created.
func (c *Chain) prepareParts(t *Tenant) {
	t.filters.create = func() (http.Handler, error) { return c.newFilters(t), nil }
	t.authenticator.create = func() (authenticator.Request, error) { return c.newAuthenticator(t) }
	t.issuer.create = func() (*issuer, error) { return newIssuer(t.spec) }
	t.openID.create = func() (http.Handler, error) { return newOpenID(t) }
	t.policy.create = func() (*rbac.RBACAuthorizer, error) { return newPolicy(t.informers), nil }
	t.admission.create = func() (admission.Interface, error) { return c.newAdmission(t) }
	t.extensions.count = func(ctx context.Context) (int64, error) { return c.countDefinitions(ctx, t) }
	t.extensions.start = func() (*customResources, error) { return c.newCustomResources(t) }
	t.aggregation.count = func(ctx context.Context) (int64, error) { return c.countAPIServices(ctx, t) }
	t.aggregation.start = func() (*apiAggregator, error) { return c.newAggregator(t) }
	t.services.create = func() (*services, error) { return c.newServices(t) }
	t.services.end, t.services.lingering = (*services).close, servicesLingering
	t.eviction.create = func() (*podstore.EvictionREST, error) { return c.newEviction(t) }
	t.connections.create = func() (*connections, error) { return c.newConnections(t) }
}

// Name returns the name of the tenant.
func (t *Tenant) Name() string { return t.spec.Name }

// Views returns the informers of the tenant.
func (t *Tenant) Views() *views.Views { return t.views }

// Client returns a client with Config.
func (t *Tenant) Client() kubernetes.Interface { return t.client }

// Config returns a client configuration of the control plane itself. Its
// requests stay in the process.
func (t *Tenant) Config() *rest.Config { return rest.CopyConfig(t.config) }

// Handler returns the apiserver of the tenant.
func (c *Chain) Handler(t *Tenant) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.serveTenant(w, r.WithContext(keyspace.NewContext(r.Context(), t.spec.Name)))
	})
}
