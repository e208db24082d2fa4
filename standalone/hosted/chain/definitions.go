package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// definitions is the resource of which each object defines a custom resource.
const definitions = "customresourcedefinitions"

// definitionsKey is the prefix of the keys of definitions, below that of a
// tenant.
const definitionsKey = "/" + apiextensions.GroupName + "/" + definitions + "/"

// installDefinitions adds the API of definitions to the shared server, so that
// a tenant without definitions needs nothing. It repeats the first part of New
// of upstream's apiserver of custom resources.
func (c *Chain) installDefinitions(server *genericapiserver.GenericAPIServer) error {
	getter := newStores(c.config.ApiExtensions.GenericConfig.RESTOptionsGetter, c.opts.Store, c.listed, c.decorateDefinitions)
	objects, err := customresourcedefinition.NewREST(apiextensionsserver.Scheme, getter)
	if err != nil {
		return fmt.Errorf("create the registry of %s: %w", definitions, err)
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(
		apiextensions.GroupName, apiextensionsserver.Scheme, metav1.ParameterCodec, apiextensionsserver.Codecs)
	group.VersionedResourcesStorageMap[apiextensionsv1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		definitions:             objects,
		definitions + "/status": customresourcedefinition.NewStatusREST(apiextensionsserver.Scheme, objects),
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("install the API of %s: %w", definitions, err)
	}
	c.builtIn.schemas = group.StaticOpenAPISpec
	return nil
}

// decorateDefinitions wraps the storage of definitions.
func (c *Chain) decorateDefinitions(store storage.Interface, resource schema.GroupResource) storage.Interface {
	return definitionStorage{Interface: c.opts.Decorate(store, resource), chain: c}
}

// definitionStorage starts a tenant's server of custom resources with the first
// definition, and with a change of one that was stored before: the server deletes
// the resources of a definition that is being deleted.
type definitionStorage struct {
	storage.Interface

	chain *Chain
}

// Create implements storage.Interface.
func (s definitionStorage) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	if err := s.Interface.Create(ctx, key, object, out, ttl); err != nil {
		return err
	}
	return s.created(ctx)
}

// GuaranteedUpdate implements storage.Interface. Server-side apply creates objects
// by it.
func (s definitionStorage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	absent := false
	observed := func(input runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
		absent = response.ResourceVersion == 0
		return tryUpdate(input, response)
	}
	err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, observed, cached)
	switch {
	case err != nil:
		return err
	case absent:
		return s.created(ctx)
	default:
		return s.changed(ctx)
	}
}

func (s definitionStorage) created(ctx context.Context) error {
	t, err := s.chain.tenant(ctx)
	if err != nil {
		return err
	}
	t.extensions.created()
	return nil
}

func (s definitionStorage) changed(ctx context.Context) error {
	t, err := s.chain.tenant(ctx)
	if err != nil {
		return err
	}
	_, _ = t.extensions.get(ctx) // the definition has changed; the next request repeats it
	return nil
}

// countDefinitions returns the number of a tenant's definitions. They need not
// be readable.
func (c *Chain) countDefinitions(ctx context.Context, t *Tenant) (int64, error) {
	ctx = keyspace.NewContext(ctx, t.spec.Name)
	response, err := c.opts.Store.KV.Get(ctx, definitionsKey, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("count the %s of tenant %q: %w", definitions, t.spec.Name, err)
	}
	return response.Count, nil
}
