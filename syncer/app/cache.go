package app

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// cacheOptions returns the options of the super cluster's cache. It holds the
// objects with the label of a tenant, objects that can be synced up, and all
// objects of kinds with claims.
func cacheOptions(flows []kinds.Flow) cache.Options {
	all := cache.ByObject{Label: labels.Everything()}
	byObject := map[client.Object]cache.ByObject{&tenancyv1alpha1.VirtualCluster{}: all}
	for _, obj := range kinds.Whole(flows) {
		byObject[obj] = all
	}
	maps.Copy(byObject, kinds.SuperObjects(flows, ofTenants()))
	return cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(ofTenants()),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject:             byObject,
		NewInformer:          informer.New,
	}
}

// ofTenants selects the objects with the label of a tenant.
func ofTenants() labels.Requirement {
	// Exists without values is always a valid requirement.
	r, _ := labels.NewRequirement(names.VCName, selection.Exists, nil)
	return *r
}

// newCache returns the super cluster's cache. It drops the options of kinds
// that the super cluster does not serve, because a cache cannot be created with
// them.
func newCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	opts.ByObject = maps.Clone(opts.ByObject)
	maps.DeleteFunc(opts.ByObject, func(obj client.Object, _ cache.ByObject) bool {
		_, err := apiutil.IsObjectNamespaced(obj, opts.Scheme, opts.Mapper)
		return meta.IsNoMatchError(err)
	})
	return cache.New(config, opts)
}
