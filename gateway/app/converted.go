package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/convert"
	"github.com/virtualcluster/virtualcluster/gateway/convert/accounts"
	"github.com/virtualcluster/virtualcluster/gateway/convert/discovery"
	"github.com/virtualcluster/virtualcluster/gateway/convert/expressions"
	"github.com/virtualcluster/virtualcluster/gateway/convert/index"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/rbac"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/internal/converted"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

// converter makes what serves tenants without a control plane.
type converter struct {
	super       *rest.Config
	log         logr.Logger
	url         *url.URL
	cache       cache.Cache
	namespaces  *index.Index
	crds        *resources.Index
	churn       *resources.Churn
	expressions *expressions.Pace
	discovery   *discovery.Handler
	roles       *rbac.Store

	admission  *tenantAdmission
	conversion *tenantConversion

	// own are connections with the credentials of the gateway.
	own http.RoundTripper
	// reviewer recognizes the tokens of service accounts.
	reviewer *identity.Reviewer

	// needed is closed when there is a converted tenant.
	needed chan struct{}

	mu sync.Mutex
	// following say how far the indexes are; empty before there is a tenant.
	following []toolscache.ResourceEventHandlerRegistration
}

func newConverter(super *rest.Config, mgr manager.Manager, options Options) (*converter, error) {
	server, _, err := rest.DefaultServerUrlFor(super)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the super cluster: %w", err)
	}
	documents, err := discovery.New(super)
	if err != nil {
		return nil, err
	}
	log := mgr.GetLogger().WithName("converted")
	own, err := connectionsTo(super, log)
	if err != nil {
		return nil, err
	}
	roles, err := rbac.NewStore(super)
	if err != nil {
		return nil, err
	}
	reviewer, err := newReviewer(super)
	if err != nil {
		return nil, err
	}
	c := &converter{
		super: super, log: log, url: server, cache: mgr.GetCache(), namespaces: index.New(), crds: resources.New(),
		churn: resources.NewChurn(), expressions: expressions.NewPace(), discovery: documents, roles: roles, own: own,
		reviewer: reviewer, needed: make(chan struct{}),
	}
	if c.admission, err = newTenantAdmission(super, mgr, c.namespaces, options); err != nil {
		return nil, err
	}
	c.conversion, err = newTenantConversion(super, mgr, c.crds, c.admission)
	return c, err
}

// Start follows the roles of converted tenants once there is one: the gateway has
// no right to read them otherwise.
func (c *converter) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-c.needed:
		c.roles.Start(ctx)
		go c.admission.keeper.Start(ctx)
		go c.admission.types.Start(ctx)
		go c.conversion.keeper.Start(ctx)
		return c.admission.network.Start(ctx)
	}
	<-ctx.Done()
	return nil
}

// accounts returns what recognizes the tokens of a tenant.
func (c *converter) accounts(vc *tenancyv1alpha1.VirtualCluster) accounts.Accounts {
	return accounts.Accounts{
		Namer: naming.Namer{Key: vc.Status.ClusterNamespace, Namespaces: c.namespaces}, Reviewer: c.reviewer,
	}
}

// handler returns what serves the requests of a tenant.
func (c *converter) handler(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, access gatewayaccess.Access,
) (http.Handler, error) {
	if err := c.follow(ctx); err != nil {
		return nil, err
	}
	fenced, err := c.fenced(access, "")
	if err != nil {
		return nil, err
	}
	upgrades, err := c.fenced(access, "http/1.1")
	if err != nil {
		return nil, err
	}
	tokens, err := convert.NewSealer(access.ContinueKey)
	if err != nil {
		return nil, err
	}
	namespace, err := converted.NamespaceOf(vc, converted.Gateway{URL: access.Server, CA: access.CA, DNS: access.DNS})
	if err != nil {
		return nil, err
	}
	account, err := c.admission.account(ctx)
	if err != nil {
		return nil, err
	}
	permissions := rbac.Tenant{Key: vc.Status.ClusterNamespace, Store: c.roles}
	handler := &convert.Handler{
		Tenant: vc.Status.ClusterNamespace, Labels: namespace.Labels, Annotations: namespace.Annotations,
		Super: c.own, Fenced: fenced, FencedUpgrades: upgrades, SuperURL: c.url,
		Nodes: nodesOf(vc), RunsDaemonSets: converted.RunsDaemonSets(&vc.Spec), Accounts: c.accounts(vc),
		Discovery: c.discovery.For(vc.Status.ClusterNamespace, c.crds), Namespaces: c.namespaces, CRDs: c.crds, Tokens: tokens,
		Churn: c.churn, Expressions: c.expressions,
		Authorize: union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), permissions), RBAC: permissions,
		Admission: c.admission.index.For(vc.Status.ClusterNamespace), Account: account, Conversion: gatewayFor(access),
		AllowsConversionWebhooks: converted.AllowsConversionWebhooks(&vc.Spec),
	}
	c.admission.set(vc, access, handler)
	c.conversion.set(vc.Status.ClusterNamespace, handler)
	return handler, nil
}

// nodesOf selects the nodes that a tenant sees without pods there; nil for none.
func nodesOf(vc *tenancyv1alpha1.VirtualCluster) labels.Selector {
	if vc.Spec.Sync == nil || vc.Spec.Sync.Nodes != tenancyv1alpha1.SyncAll {
		return nil
	}
	return labels.SelectorFromSet(vc.Spec.Sync.NodeSelector)
}

// fenced returns connections as the tenant's service account, over one protocol
// if it is not empty.
func (c *converter) fenced(access gatewayaccess.Access, protocol string) (http.RoundTripper, error) {
	config := rest.AnonymousClientConfig(c.super)
	config.BearerToken = string(access.Token)
	if protocol != "" {
		config.NextProtos = []string{protocol}
	}
	return connectionsTo(config, c.log)
}

// errNotFollowing is that what converted tenants have is not known yet.
var errNotFollowing = errors.New("the namespaces, roles and CRDs of converted tenants are not known yet: " +
	"if this lasts, give the gateway the rights in config/converted")

// follow follows the namespaces, roles and CRDs of converted tenants, once there
// is one: the gateway has no right to read them otherwise. It does not wait.
func (c *converter) follow(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.following) == 0 {
		if err := c.startFollowing(ctx); err != nil {
			return err
		}
		close(c.needed)
	}
	for _, each := range c.following {
		if !each.HasSynced() {
			return errNotFollowing
		}
	}
	if !c.roles.HasSynced() {
		return errNotFollowing
	}
	return nil
}

// followed is a kind of objects of the super cluster, and what is called when they
// change.
type followed struct {
	object  client.Object
	handler toolscache.ResourceEventHandler
}

func (c *converter) startFollowing(ctx context.Context) error {
	var started []toolscache.ResourceEventHandlerRegistration
	for _, each := range append(c.admission.followed(),
		followed{&corev1.Namespace{}, c.namespaces.Handler()}, followed{&resources.CRD{}, c.crds.Handler()},
		followed{&resources.CRD{}, c.churn.Handler()}, followed{&resources.CRD{}, c.conversion.keeper.Handler()}) {
		informer, err := c.cache.GetInformer(ctx, each.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch what converted tenants have: %w", err)
		}
		registration, err := informer.AddEventHandler(each.handler)
		if err != nil {
			return fmt.Errorf("watch what converted tenants have: %w", err)
		}
		started = append(started, registration)
	}
	c.following = started
	return nil
}
