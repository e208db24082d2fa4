package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
)

// served returns the groups of the super cluster without what a converted tenant
// does not have: kinds and subresources that are not served, and what is empty
// without them.
func served(groups []apidiscoveryv2.APIGroupDiscovery) []apidiscoveryv2.APIGroupDiscovery {
	var kept []apidiscoveryv2.APIGroupDiscovery
	for _, group := range groups {
		group.Versions = servedVersions(group.Name, group.Versions)
		if len(group.Versions) > 0 {
			kept = append(kept, group)
		}
	}
	return kept
}

func servedVersions(group string, versions []apidiscoveryv2.APIVersionDiscovery) []apidiscoveryv2.APIVersionDiscovery {
	var kept []apidiscoveryv2.APIVersionDiscovery
	for _, version := range versions {
		version.Resources = servedResources(group, version.Resources)
		if len(version.Resources) > 0 {
			kept = append(kept, version)
		}
	}
	return kept
}

func servedResources(group string, resources []apidiscoveryv2.APIResourceDiscovery) []apidiscoveryv2.APIResourceDiscovery {
	var kept []apidiscoveryv2.APIResourceDiscovery
	for _, resource := range resources {
		kind := kinds.Find(group, resource.Resource)
		if !kind.Served() {
			continue
		}
		resource.Subresources = slices.DeleteFunc(slices.Clone(resource.Subresources), func(sub apidiscoveryv2.APISubresourceDiscovery) bool {
			return kind.Subresources[sub.Subresource].Form == ""
		})
		switch {
		case kind.Class == kinds.Shown:
			resource.Verbs = kind.Verbs
		case kind.Uncreated != "":
			resource.Verbs = slices.DeleteFunc(slices.Clone(resource.Verbs), func(verb string) bool { return verb == "create" })
		}
		kept = append(kept, resource)
	}
	return kept
}
