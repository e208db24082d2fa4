package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Tenants decide how large unreferenced objects are. Of kinds that are synced
// on demand, caches therefore hold only metadata, and of that only the identity
// and state of an object: labels, annotations, owners and finalizers can be as
// large as the contents.

// TenantObjects returns the cache options of kinds of which a tenant's cache
// does not hold everything.
func TenantObjects(flows []Flow) map[client.Object]cache.ByObject {
	return cachedObjects(flows, func(selector labels.Selector) labels.Selector { return selector }, trim(identityOf))
}

// SuperObjects returns the cache options of kinds that are synced down of which
// the super cluster's cache does not hold everything that the requirement
// selects.
func SuperObjects(flows []Flow, required labels.Requirement) map[client.Object]cache.ByObject {
	return cachedObjects(flows, func(selector labels.Selector) labels.Selector { return selector.Add(required) }, trim(superIdentity))
}

func cachedObjects(
	flows []Flow, narrow func(labels.Selector) labels.Selector, trim toolscache.TransformFunc,
) map[client.Object]cache.ByObject {
	objects := map[client.Object]cache.ByObject{}
	for _, flow := range flows {
		k := flow.Erase()
		if k.selector == nil && !k.ByMetadata() {
			continue
		}
		var held cache.ByObject
		if k.selector != nil {
			held.Label = narrow(k.selector)
		}
		if k.ByMetadata() {
			held.Transform = trim
		}
		objects[k.Object] = held
	}
	return objects
}

// ByMetadata reports whether caches hold only the metadata of a kind's objects.
func (k *Kind) ByMetadata() bool { return k.metadataOnly }

// Watched returns an empty object of the type in the caches of a kind.
func (k *Kind) Watched() client.Object {
	if !k.ByMetadata() {
		return k.Object
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(k.GVK)
	return obj
}

// CachedSuper returns an object of the super cluster, from a server's answer,
// as the cache would hold it.
func (k *Kind) CachedSuper(super client.Object) client.Object { return k.trimmed(super, superIdentity) }

// CachedTenant returns a tenant's object, from a server's answer, as the cache
// would hold it.
func (k *Kind) CachedTenant(tenant client.Object) client.Object { return k.trimmed(tenant, identityOf) }

func (k *Kind) trimmed(obj client.Object, left func(metav1.Object) metav1.ObjectMeta) client.Object {
	if !k.ByMetadata() {
		return obj
	}
	trimmed := &metav1.PartialObjectMetadata{ObjectMeta: left(obj)}
	trimmed.SetGroupVersionKind(k.GVK)
	return trimmed
}

// trim returns a function that reduces the metadata in a cache.
func trim(left func(metav1.Object) metav1.ObjectMeta) toolscache.TransformFunc {
	strip := cache.TransformStripManagedFields()
	return func(obj any) (any, error) {
		if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
			return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: left(m)}, nil
		}
		return strip(obj)
	}
}

// identityOf returns the metadata that identifies an object and its state.
func identityOf(obj metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:                  obj.GetNamespace(),
		Name:                       obj.GetName(),
		UID:                        obj.GetUID(),
		ResourceVersion:            obj.GetResourceVersion(),
		Generation:                 obj.GetGeneration(),
		DeletionTimestamp:          obj.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: obj.GetDeletionGracePeriodSeconds(),
	}
}

// superIdentity returns the metadata that identifies an object of the super
// cluster, its state, and the tenant's object that it is a copy of.
func superIdentity(super metav1.Object) metav1.ObjectMeta {
	identity := identityOf(super)
	identity.Labels = only(super.GetLabels(), names.VCName, names.VCNamespace)
	identity.Annotations = only(super.GetAnnotations(), names.Cluster, names.UID, names.Namespace, names.VCName, names.VCNamespace)
	return identity
}

// only returns the entries of a map with these keys.
func only(all map[string]string, keys ...string) map[string]string {
	kept := map[string]string{}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			kept[key] = value
		}
	}
	return kept
}
