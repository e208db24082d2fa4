package discovery

import (
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
)

// snapshot serves the documents of one state of the super cluster.
type snapshot struct {
	groups groups
	byPath map[string]http.Handler
	// schemas are the paths of the API versions without the slash before them, as
	// the index of schemas has them, and the same paths in the super cluster.
	schemas map[string]string
}

// groups are what a snapshot is made of: the core group, the other groups, and
// those of a tenant's CRDs, which begin with prefix in the super cluster.
type groups struct {
	core, native, custom []apidiscoveryv2.APIGroupDiscovery
	prefix               string
}

// newSnapshot makes the documents of groups.
func newSnapshot(of groups) *snapshot {
	s := &snapshot{groups: of, byPath: map[string]http.Handler{}, schemas: map[string]string{}}
	core, groups := of.core, slices.Concat(of.native, of.custom)
	legacy := discovery.NewLegacyRootAPIHandler(discovery.DefaultAddresses{}, scheme.Codecs, corePath)
	s.byPath[corePath] = aggregated.WrapAggregatedDiscoveryToHandler(legacy, aggregate("api", core), nil)
	s.addVersions(corePath, "", core)

	root := discovery.NewRootAPIsHandler(discovery.DefaultAddresses{}, scheme.Codecs)
	s.byPath[groupsPath] = aggregated.WrapAggregatedDiscoveryToHandler(root, aggregate("apis", groups), nil)
	known, _, _ := clientdiscovery.SplitGroupsAndResources(apidiscoveryv2.APIGroupDiscoveryList{Items: groups})
	for _, group := range known.Groups {
		root.AddGroup(group)
		s.byPath[groupsPath+"/"+group.Name] = discovery.NewAPIGroupHandler(scheme.Codecs, group)
	}
	s.addVersions(groupsPath, "", of.native)
	s.addVersions(groupsPath, of.prefix, of.custom)
	return s
}

// addVersions adds the documents of the versions of groups below a path, which
// begin with prefix in the super cluster.
func (s *snapshot) addVersions(below, prefix string, groups []apidiscoveryv2.APIGroupDiscovery) {
	_, resources, _ := clientdiscovery.SplitGroupsAndResources(apidiscoveryv2.APIGroupDiscoveryList{Items: groups})
	for gv, list := range resources {
		lister := discovery.APIResourceListerFunc(func() []metav1.APIResource { return list.APIResources })
		path := below + "/" + gv.String()
		s.schemas[strings.TrimPrefix(path, "/")] = strings.TrimPrefix(below+"/"+prefix+gv.String(), "/")
		s.byPath[path] = discovery.NewAPIVersionHandler(scheme.Codecs, gv, lister)
	}
}

// aggregate serves groups as one document, in their order.
func aggregate(path string, groups []apidiscoveryv2.APIGroupDiscovery) http.Handler {
	manager := aggregated.NewResourceManager(path)
	manager.SetGroups(groups)
	for i, group := range groups {
		for j, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			manager.SetGroupVersionPriority(metav1.GroupVersion(gv), len(groups)-i, len(group.Versions)-j)
		}
	}
	return manager
}
