package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	authentication "k8s.io/kubernetes/pkg/kubeapiserver/authenticator"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/decoded"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// Chain is an apiserver for many tenants.
type Chain struct {
	opts   Options
	config *app.Config
	stores *stores
	// listed has the objects that lists have decoded.
	listed *decoded.Cache
	// apis serves the APIs, and generic is its configuration. Only the filters
	// of a tenant call it.
	apis    http.Handler
	generic *genericapiserver.Config
	core    core
	// authentication is upstream's configuration of authentication, without
	// what each tenant has of its own.
	authentication authentication.Config
	// builtIn is what all tenants have.
	builtIn     builtIn
	apiServices storage.Interface // of all tenants

	template *lazy[*template]
	roles    map[string]map[string]reconcileRole // of every cluster

	ended chan struct{}
	err   error // set before ended is closed

	mu      sync.RWMutex // guards tenants
	tenants map[string]*Tenant
}

// New builds the apiserver. It serves requests of tenants that are added, until
// ctx ends.
func New(ctx context.Context, opts Options) (*Chain, error) {
	if opts.Decorate == nil {
		opts.Decorate = func(store storage.Interface, _ schema.GroupResource) storage.Interface { return store }
	}
	c := &Chain{opts: opts, tenants: map[string]*Tenant{}, listed: decoded.New(listedBytes), ended: make(chan struct{})}
	var err error
	if c.config, c.authentication, err = newConfig(ctx); err != nil {
		return nil, err
	}
	c.shareModels()
	controlPlane := &c.config.KubeAPIs.ControlPlane
	c.generic = controlPlane.Generic
	c.stores = newStores(c.generic.RESTOptionsGetter, opts.Store, c.listed, opts.Decorate)
	c.generic.RESTOptionsGetter = c.stores
	c.generic.Authorization.Authorizer, c.generic.RuleResolver = authorizers{c}, authorizers{c}
	c.generic.AdmissionControl = admissions{c}
	c.generic.LoopbackClientConfig = inProcess(http.HandlerFunc(c.serveTenant), "")
	c.generic.DisabledPostStartHooks.Insert(clusterHooks()...)
	c.generic.BuildHandlerChainFunc = c.captureAPIs
	controlPlane.ServiceAccountIssuerURL = "" // each tenant is an issuer
	controlPlane.ServiceAccountIssuer = issuers{c}
	context.AfterFunc(ctx, c.removeAll)
	context.AfterFunc(ctx, opts.Feed.Observe(c.watchDeletions))
	c.template = &lazy[*template]{create: func() (*template, error) { return newTemplate(ctx, c) }}
	if opts.Like != nil {
		c.template, c.roles = opts.Like.template, opts.Like.roles
	} else {
		c.roles = bootstrapRoles()
	}
	return c, c.build(ctx)
}

// captureAPIs takes the place of upstream's filters: each tenant has its own.
func (c *Chain) captureAPIs(apis http.Handler, config *genericapiserver.Config) http.Handler {
	c.builtIn.apis = apis
	c.apis, c.generic = http.HandlerFunc(c.serveAPIs), config
	return http.HandlerFunc(c.serveTenant)
}

// build builds the server. It repeats controlplane.CompletedConfig.New without
// the controllers of one cluster.
func (c *Chain) build(ctx context.Context) error {
	c.closeCore()
	completed := c.config.KubeAPIs.Complete()
	rest := http.NotFoundHandler() // serveAPIs has served what tenants have added
	server, err := completed.ControlPlane.New("kube-apiserver", genericapiserver.NewEmptyDelegateWithCustomHandler(rest))
	if err != nil {
		return fmt.Errorf("build the apiserver: %w", err)
	}
	providers, err := c.providers(completed.ControlPlane)
	if err != nil {
		return err
	}
	if err := server.InstallAPIs(c.withReplacements(providers)...); err != nil {
		return fmt.Errorf("install the APIs: %w", err)
	}
	if err := c.installExtensions(server.GenericAPIServer); err != nil {
		return err
	}
	c.installOpenID(server.GenericAPIServer.Handler.GoRestfulContainer)
	prepared := server.GenericAPIServer.PrepareRun()
	go func() { // until ctx ends
		defer close(c.ended)
		c.err = prepared.RunWithContext(ctx)
	}()
	return c.describe(ctx, server.GenericAPIServer)
}

// Wait waits until the chain has ended, after the context of New.
func (c *Chain) Wait() error {
	<-c.ended
	return c.err
}

// clusterHooks returns upstream's hooks that run after the start of an
// apiserver. They work on one cluster. The bootstrap of a tenant and its
// controllers take their place.
func clusterHooks() []string {
	return []string{
		"bootstrap-controller",
		"generic-apiserver-start-informers",
		"max-in-flight-filter",
		"peer-endpoint-reconciler-controller",
		"priority-and-fairness-config-producer",
		"priority-and-fairness-filter",
		"rbac/bootstrap-roles",
		"scheduling/bootstrap-system-priority-classes",
		"start-apiserver-admission-initializer",
		"start-cluster-authentication-info-controller",
		"start-kubernetes-service-cidr-controller",
		"start-legacy-token-tracking-controller",
		"start-service-ip-repair-controllers",
		"start-system-namespaces-controller",
		"storage-object-count-tracker-hook",
		"storage-readiness",
	}
}

// Add adds a tenant, whose requests are served from then on.
func (c *Chain) Add(spec Spec) (*Tenant, error) {
	if _, err := keyspace.Tenant(keyspace.NewContext(context.Background(), spec.Name)); err != nil {
		return nil, err
	}
	t, err := c.newTenant(spec)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants == nil {
		return nil, errEnded
	}
	if c.tenants[spec.Name] != nil {
		return nil, fmt.Errorf("tenant %q exists already", spec.Name)
	}
	c.tenants[spec.Name] = t
	return t, nil
}

// Remove removes a tenant and ends its parts. Its requests fail from then on.
func (c *Chain) Remove(t *Tenant) {
	c.mu.Lock()
	maps.DeleteFunc(c.tenants, func(_ string, each *Tenant) bool { return each == t })
	c.mu.Unlock()
	t.stop()
	c.listed.Forget(t.spec.Name)
}

// Trim frees the objects that tenants have in memory, and have not read since
// the last call. The next read lists them again.
func (c *Chain) Trim() {
	c.listed.Trim()
	c.mu.RLock()
	tenants := slices.Collect(maps.Values(c.tenants))
	c.mu.RUnlock()
	for _, t := range tenants {
		t.views.Trim()
	}
}

// removeAll removes all tenants. None can be added any more.
func (c *Chain) removeAll() {
	c.mu.Lock()
	removed := c.tenants
	c.tenants = nil
	c.mu.Unlock()
	for _, t := range removed {
		t.stop()
	}
}

var (
	errUnknown = errors.New("the tenant is not served here")
	errEnded   = errors.New("the apiserver has stopped")
)

// tenant returns the tenant of a context.
func (c *Chain) tenant(ctx context.Context) (*Tenant, error) {
	name, err := keyspace.Tenant(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if t := c.tenants[name]; t != nil {
		return t, nil
	}
	return nil, errUnknown
}

// serveTenant serves a request through the filters of its tenant.
func (c *Chain) serveTenant(w http.ResponseWriter, r *http.Request) {
	filters, err := c.filtersOf(r.Context())
	if err != nil {
		fail(w, r, err)
		return
	}
	filters.ServeHTTP(w, r)
}

func (c *Chain) filtersOf(ctx context.Context) (http.Handler, error) {
	t, err := c.tenant(ctx)
	if err != nil {
		return nil, err
	}
	return t.filters.get()
}

// fail answers a request that cannot be served.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(apierrors.NewInternalError(err), legacyscheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}
