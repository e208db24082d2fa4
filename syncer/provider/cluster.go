package provider

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Cluster is a tenant's cluster: a cache and a client over connections of its own. It is cheaper than what controller-runtime
// makes by default: one mapper serves all tenants, and there is no event broadcaster; events are written as objects.
type Cluster struct {
	config *rest.Config
	http   *http.Client
	scheme *runtime.Scheme
	mapper *mapper
	cache  cache.Cache
	client client.Client
	// informers are the cache's.
	informers *informer.Group

	tenant atomic.Pointer[translate.Tenant]
	uid    types.UID // of the cluster that was engaged
	synced atomic.Bool
	served map[schema.GroupVersionKind]bool
	// replaced: the apiserver serves another cluster than that, or an earlier state of it.
	replaced atomic.Bool
	// refused is why an answer was refused, so that the tenant is disengaged; nil if none was.
	refused  atomic.Pointer[error]
	reopened *reopened
	removal  removal
	problems problems
	health   *health
	work     *work
	changed  func()
}

var _ cluster.Cluster = (*Cluster)(nil)

// newCluster connects to a tenant. All connections end with ctx; changed is called when the cluster's state changes. An untrusted apiserver
// is one that the platform does not run.
func (p *Provider) newCluster(ctx context.Context, config *rest.Config, untrusted bool, changed func()) (*Cluster, error) {
	// Deprecation warnings of tenants' apiservers are of no use in the syncer's log.
	config.WarningHandler = rest.NoWarnings{}
	c := &Cluster{config: config, scheme: p.scheme, mapper: newMapper(p.mapper), work: newWork(), changed: changed}
	c.informers = informer.NewGroup(ctx, informer.GroupOptions{
		Memory: p.memory, Exceeded: c.refuse, Rejected: p.metrics.countRejected,
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
	c.http.Transport = requests.Patient(c.reopened.wrap(c.health.wrap(c.http.Transport)))
	c.cache, err = cache.New(config, cache.Options{
		HTTPClient:                  c.http,
		Scheme:                      c.scheme,
		Mapper:                      c.mapper,
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject:                    p.objects,
		NewInformer:                 c.informers.New,
	})
	if err != nil {
		return nil, err
	}
	asking, err := client.New(config, client.Options{HTTPClient: c.http, Scheme: c.scheme, Mapper: c.mapper})
	c.client = answersChecked{asking}
	return c, err
}

// cachedObjects says which objects of a kind a cache holds, where that is not all.
func cachedObjects(narrow map[client.Object]cache.ByObject) map[client.Object]cache.ByObject {
	objects := map[client.Object]cache.ByObject{
		// Of the tenant's events only those matter that came from the super cluster.
		&corev1.Event{}: {Label: labels.SelectorFromSet(labels.Set{names.FromSuper: "true"})},
	}
	maps.Copy(objects, narrow)
	return objects
}

// Tenant is who the tenant is, as its VirtualCluster says now.
func (c *Cluster) Tenant() translate.Tenant { return *c.tenant.Load() }

// Hold says that something is done for the tenant, from now on until release is called: so long no other syncer gets the tenant. It is
// not ok when the tenant is being let go of, and then nothing may be done.
func (c *Cluster) Hold() (release func(), ok bool) {
	if !c.work.begin() {
		return nil, false
	}
	return c.work.finish, true
}

// Synced is told that the tenant's objects are being carried.
func (c *Cluster) Synced() {
	c.synced.Store(true)
	c.changed()
}

// Healthy says whether the tenant's apiserver answers, and for the cluster that was engaged, which has not lost its pods. After a
// change, the cluster is engaged again.
func (c *Cluster) Healthy() bool {
	return c.health.healthy() && !c.replaced.Load() && c.refused.Load() == nil && c.removal.unconfirmed() == 0
}

// Serves says whether the tenant's apiserver had a kind in this version when it was engaged.
func (c *Cluster) Serves(gvk schema.GroupVersionKind) bool { return c.served[gvk] }

// Learn has the clients of the cluster know a kind that is not built in.
func (c *Cluster) Learn(mapping *meta.RESTMapping) { c.mapper.learn(mapping) }

// Problem is told what keeps something of the tenant's from being carried; nothing if it is carried again. It shows in the
// condition Syncing.
func (c *Cluster) Problem(about, message string) {
	if c.problems.set(about, message) {
		c.changed()
	}
}

// Emptied is told that the tenant has no pod left though nobody deleted them, while so many run in the super cluster. Until an
// admin confirms that they are to be removed, the tenant is parked and an error is returned.
func (c *Cluster) Emptied(pods int) error {
	parked, err := c.removal.ask(pods)
	if parked {
		c.changed()
	}
	return err
}

// Start runs the cache until ctx ends, which is that of the connections.
func (c *Cluster) Start(ctx context.Context) error {
	defer c.informers.Wait()
	return c.cache.Start(ctx)
}

// GetHTTPClient returns the client that all requests to the tenant go through.
func (c *Cluster) GetHTTPClient() *http.Client { return c.http }

// GetConfig returns a copy of the configuration of the connection.
func (c *Cluster) GetConfig() *rest.Config { return rest.CopyConfig(c.config) }

// GetCache returns the cache of the tenant's objects. It holds the kinds that are watched; of events only those that were copied
// up from the super cluster, and of other kinds what Options.Objects says.
func (c *Cluster) GetCache() cache.Cache { return c.cache }

// GetScheme returns the scheme that all tenants share.
func (c *Cluster) GetScheme() *runtime.Scheme { return c.scheme }

// GetClient returns a client that reads from and writes to the tenant's apiserver directly. Read from GetCache where a cached
// answer will do.
func (c *Cluster) GetClient() client.Client { return c.client }

// GetFieldIndexer returns what adds indexes to the cache.
func (c *Cluster) GetFieldIndexer() client.FieldIndexer { return c.cache }

// GetRESTMapper returns the mapper of the built-in kinds and of those that were learned.
func (c *Cluster) GetRESTMapper() meta.RESTMapper { return c.mapper }

// GetAPIReader returns a reader that asks the tenant's apiserver.
func (c *Cluster) GetAPIReader() client.Reader { return c.client }

// GetEventRecorderFor returns a recorder that drops its events. Write events with the client instead.
func (c *Cluster) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

// GetEventRecorder returns a recorder that drops its events. Write events with the client instead.
func (c *Cluster) GetEventRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }
