package converted

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Objects returns a cache of the objects of converted tenants, which have the
// label names.Converted, and adds it to a manager of the super cluster.
func Objects(mgr manager.Manager) (cache.Cache, error) {
	selector, err := labels.Parse(names.Converted)
	if err != nil {
		return nil, fmt.Errorf("select the objects of converted tenants: %w", err)
	}
	objects, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultLabelSelector: selector, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of the objects of converted tenants: %w", err)
	}
	if err := mgr.Add(objects); err != nil {
		return nil, fmt.Errorf("add the cache of the objects of converted tenants: %w", err)
	}
	return objects, nil
}
