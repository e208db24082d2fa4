package informer

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// NewCache returns a cache of a cluster, beside the cluster's own, with informers
// of this package. Of the options, the caller sets what differs from it.
func NewCache(of cluster.Cluster, options cache.Options) (cache.Cache, error) {
	options.HTTPClient, options.Scheme, options.Mapper = of.GetHTTPClient(), of.GetScheme(), of.GetRESTMapper()
	options.NewInformer = New
	return cache.New(of.GetConfig(), options)
}
