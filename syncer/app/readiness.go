package app

import (
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// addReadiness adds the checks of /healthz and /readyz to the manager.
func (c *clients) addReadiness(mgr manager.Manager, opts Options, table []*kinds.Kind) error {
	if err := opts.AddReadiness(mgr, name, watchedObjects(table)...); err != nil || c.replica == nil {
		return err
	}
	err := mgr.AddReadyzCheck("lease", func(*http.Request) error { return c.replica.Ready() })
	if err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}

// watchedObjects returns empty objects of the types in the super cluster's
// cache.
func watchedObjects(table []*kinds.Kind) []client.Object {
	watched := make([]client.Object, 0, len(table)+1)
	watched = append(watched, &tenancyv1alpha1.VirtualCluster{})
	for _, k := range table {
		watched = append(watched, k.Watched())
	}
	return watched
}
