package views

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/pkg/informerfactory"
)

// Metadata has informers of the metadata of any resource, custom resources
// included. The informers belong to a factory.
type Metadata struct{ factory *Factory }

var _ metadatainformer.SharedInformerFactory = Metadata{}

// Metadata returns the informers of metadata that belong to this factory.
func (f *Factory) Metadata() Metadata { return Metadata{f} }

// ForResource implements metadatainformer.SharedInformerFactory.
func (m Metadata) ForResource(resource schema.GroupVersionResource) informers.GenericInformer {
	f := m.factory
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.informer(viewKey{resource: resource, metadata: true}, func() *view {
		return newView(f.views, metadataKind(resource), cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
	return generic{found, resource.GroupResource()}
}

// Start implements metadatainformer.SharedInformerFactory.
func (m Metadata) Start(stop <-chan struct{}) { m.factory.Start(stop) }

// WaitForCacheSync implements metadatainformer.SharedInformerFactory.
func (m Metadata) WaitForCacheSync(stop <-chan struct{}) map[schema.GroupVersionResource]bool {
	synced := map[schema.GroupVersionResource]bool{}
	for key, done := range m.factory.waitFor(wait.ContextForChannel(stop)) {
		if key.metadata {
			synced[key.resource] = done
		}
	}
	return synced
}

// Shutdown implements metadatainformer.SharedInformerFactory.
func (m Metadata) Shutdown() { m.factory.Close() }

// MetadataOnly returns the informers of metadata for controllers that also
// accept typed ones, such as the garbage collector.
func (f *Factory) MetadataOnly() informerfactory.InformerFactory { return metadataOnly{f.Metadata()} }

type metadataOnly struct{ metadata Metadata }

// ForResource implements informerfactory.InformerFactory.
func (m metadataOnly) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return m.metadata.ForResource(resource), nil
}

// Start implements informerfactory.InformerFactory.
func (m metadataOnly) Start(stop <-chan struct{}) { m.metadata.Start(stop) }
