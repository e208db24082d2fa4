package hosted

import (
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	listers "k8s.io/client-go/listers/core/v1"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// serviceResolver resolves the servers of aggregated APIs. It returns the pods
// of a Service, whose ClusterIP is reachable from nodes only, or the external
// name, which upstream's resolver of endpoints does not support.
type serviceResolver struct {
	aggregator.ServiceResolver

	services listers.ServiceLister
}

// resolveServices sets the resolver of a control plane's aggregated APIs.
func resolveServices(config *app.Config) {
	extra := &config.Aggregator.ExtraConfig
	extra.ServiceResolver = serviceResolver{
		ServiceResolver: extra.ServiceResolver,
		services:        config.KubeAPIs.ControlPlane.VersionedInformers.Core().V1().Services().Lister(),
	}
}

// ResolveEndpoint returns the URL of a Service.
func (r serviceResolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	service, err := r.services.Services(namespace).Get(name)
	if err == nil && service.Spec.Type == corev1.ServiceTypeExternalName {
		return proxy.ResolveCluster(r.services, namespace, name, port)
	}
	return r.ServiceResolver.ResolveEndpoint(namespace, name, port)
}
