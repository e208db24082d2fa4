package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/tools/cache"
	clienttransport "k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	externalversions "k8s.io/kube-aggregator/pkg/client/informers/externalversions"
	informers "k8s.io/kube-aggregator/pkg/client/informers/externalversions/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/controllers/status/metrics"
	remoteavailability "k8s.io/kube-aggregator/pkg/controllers/status/remote"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// apiServicesResync is upstream's.
const apiServicesResync = 5 * time.Minute

var errUnknownAPIServices = errors.New("the aggregated APIs are not known yet")

// apiAggregator serves the APIs of a tenant that are Services, and runs upstream's
// controllers of their availability and discovery. It repeats NewWithDelegate
// of upstream's aggregator without what concerns local APIs: they need no proxy,
// and registerAPIs sets their conditions.
// It ends when it is not used, and begins again with the next request.
type apiAggregator struct {
	background

	tenant   *Tenant
	resolver aggregatorserver.ServiceResolver
	services informers.APIServiceInformer
	// groups are those of the Services that respond, and discovery follows them.
	groups    aggregated.ResourceManager
	discovery aggregatorserver.DiscoveryAggregationController

	mu      sync.RWMutex // guards all below
	remotes map[schema.GroupVersion]*remoteAPI
}

// newAggregator starts the aggregator of a tenant.
func (c *Chain) newAggregator(t *Tenant) (*apiAggregator, error) {
	client, err := clientset.NewForConfig(t.config)
	if err != nil {
		return nil, fmt.Errorf("create a client of the APIServices of tenant %q: %w", t.spec.Name, err)
	}
	factory, objects := externalversions.NewSharedInformerFactory(client, apiServicesResync), t.views.NewFactory()
	a := &apiAggregator{
		tenant: t, services: factory.Apiregistration().V1().APIServices(),
		groups: aggregated.NewResourceManager(apisSegment), remotes: map[schema.GroupVersion]*remoteAPI{},
	}
	a.discovery = aggregatorserver.NewDiscoveryManager(a.groups.WithSource(aggregated.AggregatorSource))
	if a.resolver, err = newAPIServiceResolver(objects); err != nil {
		return nil, err
	}
	availability, err := remoteavailability.New(a.services, objects.Core().V1().Services(), objects.Discovery().V1().EndpointSlices(),
		client.ApiregistrationV1(), a.dialer(), a.tenant.frontProxyClient, a.resolver, metrics.New())
	if err != nil {
		return nil, fmt.Errorf("create the controller of aggregated APIs: %w", err)
	}
	a.unused = time.AfterFunc(lingering, func() { t.aggregation.expire(a) })
	known, err := a.services.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: a.update, UpdateFunc: func(_, updated any) { a.update(updated) }, DeleteFunc: a.remove,
	})
	if err != nil {
		return nil, fmt.Errorf("observe the APIServices of tenant %q: %w", t.spec.Name, err)
	}
	a.start(factory, objects, known.HasSynced, availability.Run, supervision{
		late:   func() { c.report(t, errUnknownAPIServices) },
		failed: func(err error) { c.report(t, fmt.Errorf("run a controller of APIServices: %w", err)) },
		expire: func() { t.aggregation.expire(a) },
	})
	return a, nil
}

// start starts the controllers, and follows discovery once all APIServices are
// known.
func (a *apiAggregator) start(
	factory externalversions.SharedInformerFactory, objects *views.Factory,
	known func() bool, availability func(int, <-chan struct{}), on supervision,
) {
	discovered := make(chan struct{})
	synced := func() bool {
		select {
		case <-discovered:
			return true
		default:
			return false
		}
	}
	a.run(a.tenant.life, synced, on,
		func(ctx context.Context) {
			if cache.WaitForCacheSync(ctx.Done(), known) {
				a.discovery.Run(ctx.Done(), discovered)
			}
		},
		func(ctx context.Context) { availability(1, ctx.Done()) },
		func(ctx context.Context) {
			factory.Start(ctx.Done())
			objects.Start(ctx.Done())
			<-ctx.Done()
			factory.Shutdown()
		},
	)
}

// dialer returns the way to aggregated APIs.
func (a *apiAggregator) dialer() *clienttransport.DialHolder {
	return &clienttransport.DialHolder{Dial: utilnet.DialFunc(a.tenant.spec.Network.Dialer(egress.APIServices))}
}

// update adds or changes an API.
func (a *apiAggregator) update(object any) {
	service, ok := object.(*apiregistrationv1.APIService)
	if !ok {
		return
	}
	if service.Spec.Service == nil {
		a.remove(service)
		return
	}
	a.mu.Lock()
	version := versionOf(service)
	if a.remotes[version] == nil {
		a.remotes[version] = &remoteAPI{aggregator: a}
	}
	found := a.remotes[version]
	a.mu.Unlock()
	found.update(service)
	// Discovery does not wait until the API is available.
	a.discovery.AddAPIService(service, http.HandlerFunc(found.discover))
}

// remove removes an API.
func (a *apiAggregator) remove(object any) {
	service, ok := lastknown.Of[*apiregistrationv1.APIService](object)
	if !ok {
		return
	}
	a.discovery.RemoveAPIService(service.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if removed := a.remotes[versionOf(service)]; removed != nil {
		removed.close()
		delete(a.remotes, versionOf(service))
	}
}

// used delays the end of the aggregator. Without requests, it need not know
// which APIs are available, and checks of many tenants are expensive.
func (a *apiAggregator) used() {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if len(a.remotes) > 0 {
		a.unused.Reset(lingering)
	}
}

// of returns the API of a version, or nil if it is not aggregated.
func (a *apiAggregator) of(version schema.GroupVersion) *remoteAPI {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.remotes[version]
}

func versionOf(service *apiregistrationv1.APIService) schema.GroupVersion {
	return schema.GroupVersion{Group: service.Spec.Group, Version: service.Spec.Version}
}
