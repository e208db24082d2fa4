package app

import (
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// addReadiness adds the checks of /healthz and /readyz to the manager.
func (c *clients) addReadiness(mgr manager.Manager, opts Options, flows []kinds.Flow) error {
	watched, err := watchedObjects(mgr, flows)
	if err != nil {
		return err
	}
	if err := opts.AddReadiness(mgr, name, watched...); err != nil || c.replica == nil {
		return err
	}
	err = mgr.AddReadyzCheck("lease", func(*http.Request) error { return c.replica.Ready() })
	if err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// watchedObjects returns empty objects of the types in the super cluster's
// cache.
func watchedObjects(mgr manager.Manager, flows []kinds.Flow) ([]client.Object, error) {
	watched := []client.Object{&tenancyv1alpha1.VirtualCluster{}}
	for _, flow := range flows {
		kind := flow.Erase()
		var err error
		if kind.GVK, err = apiutil.GVKForObject(kind.Object, mgr.GetScheme()); err != nil {
			return nil, fmt.Errorf("kind %s: %w", kind.Name, err)
		}
		watched = append(watched, kind.Watched())
	}
	return watched, nil
}
