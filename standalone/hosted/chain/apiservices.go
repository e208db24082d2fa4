package chain

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiservicerest "k8s.io/kube-aggregator/pkg/registry/apiservice/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// apiServicesKey is the prefix of the keys of APIServices, below that of a
// tenant.
const apiServicesKey = "/" + apiregistration.GroupName + "/apiservices/"

// installAPIServices adds the API of APIServices to the shared server, so that
// a tenant whose APIs are all local needs nothing.
func (c *Chain) installAPIServices(server *genericapiserver.GenericAPIServer) error {
	config := c.config.Aggregator.GenericConfig
	getter := newStores(config.RESTOptionsGetter, c.opts.Store, c.listed, c.decorateAPIServices)
	group := apiservicerest.NewRESTStorage(config.MergedResourceConfig, getter, false)
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("install the API of APIServices: %w", err)
	}
	return nil
}

// decorateAPIServices wraps the storage of APIServices, of which there is one.
func (c *Chain) decorateAPIServices(store storage.Interface, resource schema.GroupResource) storage.Interface {
	c.apiServices = c.opts.Decorate(store, resource)
	return apiServiceStorage{Interface: c.apiServices, chain: c}
}

// apiServiceStorage starts the aggregator of a tenant with the first APIService
// that is a Service, and has local APIs registered again after changes.
type apiServiceStorage struct {
	storage.Interface

	chain *Chain
}

// Create implements storage.Interface.
func (s apiServiceStorage) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	if err := s.Interface.Create(ctx, key, object, out, ttl); err != nil {
		return err
	}
	return s.written(ctx, out)
}

// GuaranteedUpdate implements storage.Interface.
func (s apiServiceStorage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached)
	if err != nil {
		return err
	}
	return s.written(ctx, destination)
}

// Delete implements storage.Interface.
func (s apiServiceStorage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	if err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts); err != nil {
		return err
	}
	t, err := s.chain.tenant(ctx)
	if err != nil {
		return err
	}
	t.registration.request(registrationDelay)
	return nil
}

func (s apiServiceStorage) written(ctx context.Context, object runtime.Object) error {
	t, err := s.chain.tenant(ctx)
	if err != nil {
		return err
	}
	t.registration.request(registrationDelay)
	if service, ok := object.(*apiregistration.APIService); ok && service.Spec.Service != nil {
		t.aggregation.created()
	}
	return nil
}

// countAPIServices returns the number of a tenant's APIServices that are
// Services.
func (c *Chain) countAPIServices(ctx context.Context, t *Tenant) (int64, error) {
	var found apiregistration.APIServiceList
	options := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	if err := c.apiServices.GetList(keyspace.NewContext(ctx, t.spec.Name), apiServicesKey, options, &found); err != nil {
		return 0, fmt.Errorf("list the APIServices of tenant %q: %w", t.spec.Name, err)
	}
	var n int64
	for i := range found.Items {
		if found.Items[i].Spec.Service != nil {
			n++
		}
	}
	return n, nil
}
