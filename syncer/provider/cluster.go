package provider

import (
	"context"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Cluster is the cluster of a tenant: a cache and a client with connections of
// their own. It needs less memory than controller-runtime's default: one mapper
// serves all tenants, and there is no event broadcaster; events are written as
// objects.
type Cluster struct {
	config *rest.Config
	http   *http.Client
	// closeIdle closes the connection, unless it is in use.
	closeIdle func()
	scheme    *runtime.Scheme
	mapper    *mapper
	cache     cache.Cache
	client    client.Client
	// informers are the informers of the cache.
	informers *informer.Group

	tenant atomic.Pointer[translate.Tenant]
	hosted bool
	uid    types.UID // of the cluster that was engaged
	synced atomic.Bool
	served map[schema.GroupVersionKind]bool
	known  *servedKinds // of all tenants
	// replaced is set if the apiserver serves another cluster than that, or an
	// earlier state of it.
	replaced atomic.Bool
	// refused is the reason why an answer was rejected, so that the tenant is
	// disengaged; nil if none was.
	refused  atomic.Pointer[error]
	reopened *reopened
	removal  removal
	problems problems
	// pending summarizes the tenant's pending objects; nil before the first
	// summary.
	pending atomic.Pointer[string]
	health  *health
	work    *work
	changed func()
}

var _ cluster.Cluster = (*Cluster)(nil)

// newCluster connects to a tenant. All connections end with ctx; changed is
// called when the cluster's state changes. untrusted is set for an apiserver
// that the platform does not run.
func (p *Provider) newCluster(ctx context.Context, config *rest.Config, untrusted bool, changed func()) (*Cluster, error) {
	// Deprecation warnings of tenants' apiservers are useless in the syncer's
	// log.
	config.WarningHandler = rest.NoWarnings{}
	c := &Cluster{
		config: config, scheme: p.scheme, mapper: newMapper(p.mapper), hosted: !untrusted, work: newWork(), known: &p.known, changed: changed,
	}
	var source *informer.Source
	if !untrusted {
		source = changes{c, p.held}.source()
	}
	c.informers = informer.NewGroup(ctx, informer.GroupOptions{
		Source: source, Memory: p.memory, Exceeded: c.refuse, Rejected: p.metrics.countRejected,
		Namespaced: func(example runtime.Object) (bool, error) {
			return apiutil.IsObjectNamespaced(example, c.scheme, c.mapper)
		},
	})
	c.health = &health{ctx: ctx, changed: changed, tripped: p.metrics.trips.Inc, probe: c.probe}
	c.reopened = newReopened(ctx, c.Verify)
	var err error
	c.http, err = tenanthttp.NewClient(ctx, config, tenanthttp.Options{
		Limits: tenanthttp.DefaultLimits(), Untrusted: untrusted,
		Refused: c.refuse,
	})
	if err != nil {
		return nil, err
	}
	base := c.http.Transport
	c.closeIdle = func() { utilnet.CloseIdleConnectionsFor(base) }
	c.http.Transport = requests.Patient(c.reopened.wrap(c.health.wrap(c.http.Transport)))
	c.cache = c.informers.NewCache(informer.CacheOptions{
		Config: config, HTTPClient: c.http, Scheme: c.scheme, Mapper: c.mapper, Transform: p.held.transform, Wrap: p.held.narrow,
	})
	asking, err := client.New(config, client.Options{HTTPClient: c.http, Scheme: c.scheme, Mapper: c.mapper})
	c.client = answersChecked{asking}
	return c, err
}

// Tenant returns the tenant according to the current VirtualCluster.
func (c *Cluster) Tenant() translate.Tenant { return *c.tenant.Load() }

// Hold registers work for the tenant, until release is called: no other syncer
// serves the tenant before. If ok is false, the tenant is being disengaged, and
// the work must not begin.
func (c *Cluster) Hold() (release func(), ok bool) {
	if !c.work.begin() {
		return nil, false
	}
	return c.work.finish, true
}

// Synced reports that the tenant's objects are synced.
func (c *Cluster) Synced() {
	c.synced.Store(true)
	c.changed()
}

// Healthy reports whether the tenant's apiserver answers, serves the cluster
// that was engaged, and has not lost its pods. When that changes, the cluster
// is engaged again.
func (c *Cluster) Healthy() bool {
	return c.health.healthy() && !c.replaced.Load() && c.refused.Load() == nil && c.removal.unconfirmed() == 0
}

// Serves reports whether the tenant's apiserver served a kind in this version
// when it was engaged.
func (c *Cluster) Serves(gvk schema.GroupVersionKind) bool { return c.served[gvk] }

// Learn adds a kind that is not built in to the mapper of the cluster's
// clients.
func (c *Cluster) Learn(mapping *meta.RESTMapping) { c.mapper.learn(mapping) }

// Problem reports that a part of the tenant cannot be synced; an empty message
// reports that it is synced again. Problems are part of the condition Syncing.
func (c *Cluster) Problem(about, message string) {
	if c.problems.set(about, message) {
		c.changed()
	}
}

// Pending records a summary of the tenant's pending objects, which shows in the
// condition Synced; empty if nothing is pending.
func (c *Cluster) Pending(summary string) {
	if was := c.pending.Swap(&summary); was == nil && summary != "" || was != nil && *was != summary {
		c.changed()
	}
}

// pendingSummary returns the last summary of the tenant's pending objects.
func (c *Cluster) pendingSummary() string {
	if summary := c.pending.Load(); summary != nil {
		return *summary
	}
	return ""
}

// Emptied reports that the tenant has no pods left without an observed
// deletion, while that many run in the super cluster. It returns an error and
// parks the tenant, until an admin confirms that they should be deleted.
func (c *Cluster) Emptied(pods int) error {
	parked, err := c.removal.ask(pods)
	if parked {
		c.changed()
	}
	return err
}

// Start waits until ctx is done, which is the context of the connections, and
// the informers have ended. They start when they are made.
func (c *Cluster) Start(ctx context.Context) error { return c.cache.Start(ctx) }

// Hosted reports whether the platform runs the tenant's apiserver.
func (c *Cluster) Hosted() bool { return c.hosted }

// GetHTTPClient returns the client for all requests to the tenant.
func (c *Cluster) GetHTTPClient() *http.Client { return c.http }

// GetConfig returns a copy of the configuration of the connection.
func (c *Cluster) GetConfig() *rest.Config { return rest.CopyConfig(c.config) }

// GetCache returns the cache of the tenant's objects. It holds the kinds that
// are watched: only those events that were synced up, and the parts of other
// kinds that Options.Objects selects.
func (c *Cluster) GetCache() cache.Cache { return c.cache }

// GetScheme returns the scheme that all tenants share.
func (c *Cluster) GetScheme() *runtime.Scheme { return c.scheme }

// GetClient returns a client that reads from and writes to the tenant's
// apiserver directly. Read from GetCache if a cached answer suffices.
func (c *Cluster) GetClient() client.Client { return c.client }

// GetFieldIndexer returns the indexer of the cache.
func (c *Cluster) GetFieldIndexer() client.FieldIndexer { return c.cache }

// GetRESTMapper returns the mapper of the built-in and the learned kinds.
func (c *Cluster) GetRESTMapper() meta.RESTMapper { return c.mapper }

// GetAPIReader returns a reader of the tenant's apiserver.
func (c *Cluster) GetAPIReader() client.Reader { return c.client }

// GetEventRecorderFor returns a recorder that drops events. Write events with
// the client instead.
func (c *Cluster) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

// GetEventRecorder returns a recorder that drops events. Write events with the
// client instead.
func (c *Cluster) GetEventRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }
