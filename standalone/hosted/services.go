package hosted

import (
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	listers "k8s.io/client-go/listers/core/v1"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// serviceResolver finds the servers of aggregated APIs: the pods behind a
// service, since its ClusterIP leads nowhere outside of the nodes, or what an
// external name stands for, which upstream follows for ClusterIPs alone.
type serviceResolver struct {
	aggregator.ServiceResolver

	services listers.ServiceLister
}

// resolveServices has a control plane's aggregated APIs found.
func resolveServices(config *app.Config) {
	extra := &config.Aggregator.ExtraConfig
	extra.ServiceResolver = serviceResolver{
		ServiceResolver: extra.ServiceResolver,
		services:        config.KubeAPIs.ControlPlane.VersionedInformers.Core().V1().Services().Lister(),
	}
}

// ResolveEndpoint is where a service is served.
func (r serviceResolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	service, err := r.services.Services(namespace).Get(name)
	if err == nil && service.Spec.Type == corev1.ServiceTypeExternalName {
		return proxy.ResolveCluster(r.services, namespace, name, port)
	}
	return r.ServiceResolver.ResolveEndpoint(namespace, name, port)
}
