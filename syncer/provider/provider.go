// Package provider provides VirtualClusters as clusters of
// multicluster-runtime: it engages every tenant whose control plane is ready,
// and disengages it when it is deleted. Other programs can use it to run
// controllers of their own for all tenants.
package provider

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/tenanthttp"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// probeTimeout is the time limit for an answer of a tenant's apiserver before
// it counts as unreachable.
const probeTimeout = 5 * time.Second

// Provider engages tenants by their cluster keys.
type Provider struct {
	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
	super   client.Client
	reader  client.Reader // of objects that the super cluster's cache does not hold
	prepare func(*rest.Config)
	memory  int64
	held    held
	known   servedKinds
	metrics *Metrics
	changes chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]

	// shared notifies Start of another share.
	shared chan struct{}
	// started is closed when aware is set.
	started chan struct{}
	aware   multicluster.Aware
	ctx     context.Context

	mu sync.RWMutex
	// tenants holds the engaged tenants by VirtualCluster, names their
	// VirtualClusters by cluster key.
	tenants map[types.NamespacedName]*tenant
	names   map[multicluster.ClusterName]types.NamespacedName
	indexes []index
	// share is nil if all tenants are served.
	share  Share
	visits map[types.NamespacedName]*visit
	// refusals are the reasons why tenants are temporarily disengaged.
	refusals map[types.NamespacedName]*refusal
	sleepers *sleepers
}

// Options configure a provider.
type Options struct {
	// ClusterScoped are the synced kinds without namespaces.
	ClusterScoped []schema.GroupKind
	// Objects are the cache options of kinds that are not cached completely:
	// their label selectors and transforms.
	Objects map[client.Object]cache.ByObject
	// Prepare prepares the configuration of connections to tenants.
	Prepare func(*rest.Config)
	// Memory is the maximum memory of one tenant's objects in bytes.
	Memory int64
	// WakeInterval is the minimum time between two wakes of a tenant that sleeps
	// because of changes that are not urgent.
	WakeInterval time.Duration
	// Metrics are the metrics of this provider.
	Metrics *Metrics
}

// tenant is an engaged tenant.
type tenant struct {
	cluster    *Cluster
	cancel     context.CancelFunc
	uid        types.UID
	kubeconfig [sha256.Size]byte
}

// index is an index of every tenant's cache.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

var (
	_ multicluster.Provider         = (*Provider)(nil)
	_ multicluster.ProviderRunnable = (*Provider)(nil)
)

// New returns a provider. The tenants' clusters use the scheme.
func New(scheme *runtime.Scheme, opts Options) *Provider {
	return &Provider{
		scheme:  scheme,
		prepare: opts.Prepare,
		memory:  opts.Memory,
		held:    newHeld(scheme, opts.Objects),
		metrics: opts.Metrics,
		mapper:  staticMapper(scheme, opts.ClusterScoped),
		changes: make(chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]),
		shared:  make(chan struct{}, 1),
		started: make(chan struct{}),
		tenants: map[types.NamespacedName]*tenant{},
		names:   map[multicluster.ClusterName]types.NamespacedName{},
		visits:  map[types.NamespacedName]*visit{},

		refusals: map[types.NamespacedName]*refusal{},
		sleepers: newSleepers(opts.WakeInterval),
	}
}

// Start engages tenants with aware until ctx is done.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	p.aware, p.ctx = aware, ctx
	close(p.started)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.shared:
		}
		if err := p.requeueAll(ctx); err != nil {
			return err
		}
	}
}

// Get returns the engaged tenant with a cluster key.
func (p *Provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if t := p.tenants[p.names[name]]; t != nil {
		return t.cluster, nil
	}
	return nil, fmt.Errorf("tenant %s: %w", name, multicluster.ErrClusterNotFound)
}

// IndexField adds an index to the caches of all tenants, including later ones.
func (p *Provider) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexes = append(p.indexes, index{obj, field, extract})
	for _, t := range p.tenants {
		if err := t.cluster.cache.IndexField(ctx, obj, field, extract); err != nil {
			return fmt.Errorf("index %s of tenant %s: %w", field, t.cluster.Tenant().Key, err)
		}
	}
	return nil
}

// engaged returns the engaged tenant of a VirtualCluster, or nil.
func (p *Provider) engaged(vc types.NamespacedName) *tenant {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.tenants[vc]
}

// engage connects to a tenant and engages it, unless the visit ends before. It
// does not wait for its caches.
func (p *Provider) engage(
	visiting context.Context, vc *tenancyv1alpha1.VirtualCluster, root *corev1.Namespace, config []byte,
) error {
	rest, err := kubeconfig.RESTConfig(config)
	if err != nil {
		return problem{tenancyv1alpha1.ReasonKubeconfigInvalid, "The admin kubeconfig cannot be used: " + err.Error(), err}
	}
	rest.Dial = tenanthttp.Dialer()
	p.prepare(rest)
	// The platform runs only the apiservers of this provisioner.
	untrusted := root.Annotations[names.Provisioner] != string(tenancyv1alpha1.ProvisionerHosted)
	ctx, cancel := context.WithCancel(p.ctx)
	defer context.AfterFunc(visiting, cancel)()
	c, err := p.newCluster(ctx, rest, untrusted, func() { p.changed(ctx, vc) })
	if err == nil {
		err = c.remember(ctx)
	}
	if err == nil {
		err = c.discover(ctx)
	}
	if err != nil {
		cancel()
		return asProblem(err, rest.Host)
	}
	if err := p.recognize(ctx, vc, root, c); err != nil {
		cancel()
		return err
	}
	// Its buffers are as large as what was discovered. The next one is open as
	// long as the tenant is engaged.
	c.closeIdle()
	who := translate.NewTenant(vc, root.UID)
	c.tenant.Store(&who)
	c.removal.confirm(vc)
	t := &tenant{cluster: c, cancel: cancel, uid: vc.UID, kubeconfig: sha256.Sum256(config)}
	if err := p.add(ctx, visiting, client.ObjectKeyFromObject(vc), t); err != nil {
		cancel()
		return err
	}
	return nil
}

// add registers a tenant and engages it.
func (p *Provider) add(ctx, visiting context.Context, vc types.NamespacedName, t *tenant) error {
	p.mu.Lock()
	if err := visiting.Err(); err != nil {
		p.mu.Unlock()
		return err
	}
	name := multicluster.ClusterName(t.cluster.Tenant().Key)
	p.tenants[vc], p.names[name] = t, vc
	indexes := p.indexes
	p.mu.Unlock()
	if err := p.run(ctx, name, t, indexes); err != nil {
		p.disengage(vc)
		return err
	}
	return nil
}

// run adds the indexes to a tenant's cache and engages the tenant.
func (p *Provider) run(ctx context.Context, name multicluster.ClusterName, t *tenant, indexes []index) error {
	for _, i := range indexes {
		if err := t.cluster.cache.IndexField(ctx, i.object, i.field, i.extract); err != nil {
			return fmt.Errorf("index %s of tenant %s: %w", i.field, name, err)
		}
	}
	return p.aware.Engage(ctx, name, t.cluster)
}

// disengage disengages a tenant and waits until all work for it has ended.
// Everything that was engaged with it ends with its context.
func (p *Provider) disengage(vc types.NamespacedName) {
	p.mu.Lock()
	done := p.lockedDisengage(vc)
	p.mu.Unlock()
	<-done
}

// lockedDisengage begins to disengage a tenant, and returns a channel that is
// closed when all work for it has ended.
func (p *Provider) lockedDisengage(vc types.NamespacedName) <-chan struct{} {
	t := p.tenants[vc]
	if t == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	t.cancel()
	delete(p.tenants, vc)
	delete(p.names, multicluster.ClusterName(t.cluster.Tenant().Key))
	return t.cluster.work.end()
}

// changed requeues a VirtualCluster.
func (p *Provider) changed(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) {
	select {
	case p.changes <- event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]{Object: vc}:
	case <-ctx.Done():
	}
}
