package chain

import (
	"fmt"
	"sync"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/decoded"
)

// listedBytes is the memory of objects that lists have decoded, of all tenants.
const listedBytes = 64 << 20

// Decorator wraps the storage of a resource.
type Decorator func(storage.Interface, schema.GroupResource) storage.Interface

// stores creates the storage of built-in resources on one confined client of
// etcd. All registries of a resource have the same storage, so that a part of a
// tenant adds no storage of its own.
type stores struct {
	generic.RESTOptionsGetter

	client   *kubernetes.Client
	listed   *decoded.Cache
	decorate Decorator

	mu       sync.Mutex // guards all below
	existing map[schema.GroupResource]storage.Interface
}

func newStores(inner generic.RESTOptionsGetter, client *kubernetes.Client, listed *decoded.Cache, decorate Decorator) *stores {
	return &stores{
		RESTOptionsGetter: inner, client: client, listed: listed, decorate: decorate,
		existing: map[schema.GroupResource]storage.Interface{},
	}
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (s *stores) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.CountMetricPollPeriod = 0 // counts the objects of no tenant
	options.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, err := s.of(config, resource, prefix, newFunc, newListFunc)
		return store, func() {}, err
	}
	return options, err
}

// of returns the storage of a resource.
func (s *stores) of(
	config *storagebackend.ConfigForResource, resource schema.GroupResource, prefix string, newFunc, newListFunc func() runtime.Object,
) (storage.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if store, ok := s.existing[resource]; ok {
		return store, nil
	}
	store, err := s.create(config, resource, prefix, newFunc, newListFunc)
	if err != nil {
		return nil, err
	}
	s.existing[resource] = store
	return store, nil
}

func (s *stores) create(
	config *storagebackend.ConfigForResource, resource schema.GroupResource, prefix string, newFunc, newListFunc func() runtime.Object,
) (storage.Interface, error) {
	versioner, codec := storage.APIObjectVersioner{}, containedCodec{config.Codec, resource}
	decoder := s.listed.Decoder(etcd3.NewDefaultDecoder(codec, versioner))
	store, err := etcd3.New(s.client, nil, codec, newFunc, newListFunc, config.Prefix, prefix, resource,
		identity.NewEncryptCheckTransformer(), config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		return nil, fmt.Errorf("create the storage of %s: %w", resource, err)
	}
	return s.decorate(containedStorage{store}, resource), nil
}
