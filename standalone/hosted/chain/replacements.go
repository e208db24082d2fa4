package chain

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	controlplane "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// replacement replaces resources of an API version, whose REST storage of
// upstream keeps something of one cluster or loses the tenant of a request.
type replacement struct {
	version schema.GroupVersion
	replace func(generic.RESTOptionsGetter, map[string]rest.Storage) error
}

func (c *Chain) replacements() []replacement {
	return []replacement{
		{corev1.SchemeGroupVersion, c.divideCore},
		{corev1.SchemeGroupVersion, c.replaceTokenRequests},
		{authenticationv1.SchemeGroupVersion, c.replaceTokenReviews},
	}
}

// provider is upstream's provider of an API group, with replacements.
type provider struct {
	controlplane.RESTStorageProvider

	replacements []replacement
}

// NewRESTStorage implements controlplane.RESTStorageProvider.
func (p provider) NewRESTStorage(
	enabled serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter,
) (genericapiserver.APIGroupInfo, error) {
	group, err := p.RESTStorageProvider.NewRESTStorage(enabled, options)
	if err != nil {
		return group, err
	}
	for _, each := range p.replacements {
		if each.version.Group != p.GroupName() {
			continue
		}
		if err := each.replace(options, group.VersionedResourcesStorageMap[each.version.Version]); err != nil {
			return group, fmt.Errorf("API %s: %w", each.version, err)
		}
	}
	return group, nil
}

// withReplacements also drops the hooks of the providers, which work on one
// cluster. The repair of allocations is part of a tenant's Services.
func (c *Chain) withReplacements(providers []controlplane.RESTStorageProvider) []controlplane.RESTStorageProvider {
	replaced := make([]controlplane.RESTStorageProvider, 0, len(providers))
	for _, each := range providers {
		replaced = append(replaced, provider{RESTStorageProvider: each, replacements: c.replacements()})
	}
	return replaced
}
