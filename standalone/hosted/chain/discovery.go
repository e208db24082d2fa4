package chain

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	conversions "k8s.io/apiserver/pkg/apis/apidiscovery/v2"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	genericapiserver "k8s.io/apiserver/pkg/server"
	clientdiscovery "k8s.io/client-go/discovery"

	"github.com/virtualcluster/virtualcluster/internal/inprocess"
)

// aggregatedMediaType is that of a discovery document with all groups.
const aggregatedMediaType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// builtInDiscovery are the built-in groups. They never change.
type builtInDiscovery struct {
	codecs   serializer.CodecFactory
	groups   []apidiscovery.APIGroupDiscovery
	versions map[string]map[string]bool // of each group
	tag      string
	// limited is the same for tenants that cannot create DaemonSets.
	limited limitedDiscovery
}

// has reports whether a version of a group is built in.
func (b *builtInDiscovery) has(group, version string) bool { return b.versions[group][version] }

// describe describes the built-in APIs, which have all been installed.
func (c *Chain) describe(ctx context.Context, server *genericapiserver.GenericAPIServer) error {
	if c.opts.Like != nil {
		c.builtIn.described = c.opts.Like.builtIn.described
		return nil
	}
	discovery, err := newBuiltInDiscovery(ctx, server)
	if err != nil {
		return err
	}
	if discovery.limited, err = limitDiscovery(ctx, discovery, c.builtIn.apis); err != nil {
		return err
	}
	openAPI := newBuiltInOpenAPI(c.config.KubeAPIs.ControlPlane.Generic, server.Handler.GoRestfulContainer)
	c.builtIn.described = &described{discovery: discovery, openAPI: openAPI, services: builtInServices(discovery.versions)}
	return nil
}

// newBuiltInDiscovery reads the discovery document of the built-in APIs.
func newBuiltInDiscovery(ctx context.Context, server *genericapiserver.GenericAPIServer) (b builtInDiscovery, err error) {
	codecs, err := newDiscoveryCodecs()
	if err != nil {
		return b, err
	}
	var list apidiscovery.APIGroupDiscoveryList
	tag, err := readDocument(ctx, server.AggregatedDiscoveryGroupManager, "/apis", aggregatedMediaType, &list)
	if err != nil {
		return b, err
	}
	b = builtInDiscovery{
		codecs: codecs, groups: list.Items, tag: tag, versions: map[string]map[string]bool{},
	}
	for _, group := range list.Items {
		versions := map[string]bool{}
		for _, v := range group.Versions {
			versions[v.Version] = true
		}
		b.versions[group.Name] = versions
	}
	return b, nil
}

// newDiscoveryCodecs returns the codecs of the documents of aggregated discovery.
func newDiscoveryCodecs() (serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(apidiscovery.AddToScheme, apidiscoveryv2beta1.AddToScheme, conversions.RegisterConversions)
	if err := types.AddToScheme(scheme); err != nil {
		return serializer.CodecFactory{}, fmt.Errorf("register the types of discovery: %w", err)
	}
	return serializer.NewCodecFactory(scheme), nil
}

// readDocument reads a JSON document from a handler in this process, and returns
// its ETag.
func readDocument(ctx context.Context, served http.Handler, path, mediaType string, into any) (tag string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+inprocess.Host+path, nil)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	request.Header.Set("Accept", mediaType)
	response, err := transport(served, "").RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	defer response.Body.Close() //nolint:errcheck // of this process
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read %s: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return response.Header.Get("ETag"), nil
}

// state reports whether the groups of a tenant have changed.
type state struct {
	custom  *customResources
	changes int64  // of the definitions
	remote  string // the ETag of the aggregated groups
}

// groups are the groups of a tenant that has added some.
type groups struct {
	state state
	// all have the built-in ones, too. Both share what is equal.
	all   []apidiscovery.APIGroupDiscovery
	added map[string]bool // groups that are not only built in
	tag   string
	// Earlier forms of the same:
	list      []metav1.APIGroup
	resources map[schema.GroupVersion]*metav1.APIResourceList // of definitions
}

// stateOf returns the state of a tenant's groups, and the aggregated ones.
func (c *Chain) stateOf(ctx context.Context, from added) (now state, remote []apidiscovery.APIGroupDiscovery, err error) {
	if from.custom != nil {
		now.custom, now.changes = from.custom, from.custom.changes.Load()
	}
	if from.remote != nil {
		var list apidiscovery.APIGroupDiscoveryList
		now.remote, err = readDocument(ctx, from.remote.groups, "/apis", aggregatedMediaType, &list)
		remote = list.Items
	}
	return now, remote, err
}

// groupsOf returns the groups of a tenant.
func (c *Chain) groupsOf(ctx context.Context, from added) (*groups, error) {
	now, remote, err := c.stateOf(ctx, from)
	if err != nil {
		return nil, err
	}
	if known := from.tenant.groups.Load(); known != nil && known.state == now {
		return known, nil
	}
	objects, err := from.definitions()
	if err != nil {
		return nil, err
	}
	merged := mergeGroups(remote, customGroups(objects))
	content, err := json.Marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("encode the groups that a tenant has added: %w", err)
	}
	builtIn, tag := c.builtIn.discovery.of(from.tenant)
	sum := sha256.Sum256(append(content, tag...))
	found := &groups{state: now, added: map[string]bool{}, tag: hex.EncodeToString(sum[:])}
	for _, each := range merged {
		found.added[each.Name] = true
	}
	found.all = mergeGroups(builtIn, merged)
	for _, each := range found.all {
		found.list = append(found.list, groupOf(each))
	}
	_, found.resources, _ = clientdiscovery.SplitGroupsAndResources(apidiscovery.APIGroupDiscoveryList{Items: customGroups(objects)})
	tidy(found.resources, objects)
	from.tenant.groups.Store(found)
	return found, nil
}

// definitions returns the definitions of custom resources.
func (a added) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if a.custom == nil {
		return nil, nil
	}
	objects, err := a.custom.definitions.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the %s: %w", definitions, err)
	}
	return objects, nil
}

// groupOf returns a group without its resources. It has the versions that do
// not respond, too: clients must not take them for missing.
func groupOf(from apidiscovery.APIGroupDiscovery) metav1.APIGroup {
	group := metav1.APIGroup{Name: from.Name}
	for _, v := range from.Versions {
		version := schema.GroupVersion{Group: from.Name, Version: v.Version}
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: v.Version})
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

// mergeGroups adds groups to others, which they follow. In a group of both, the
// added versions come first; a version of both is not added.
func mergeGroups(others, additional []apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery {
	merged := slices.Clone(others)
	for _, added := range additional {
		at := slices.IndexFunc(merged, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == added.Name })
		if at < 0 {
			merged = append(merged, added)
			continue
		}
		own := merged[at].Versions
		merged[at].Versions = append(slices.DeleteFunc(slices.Clone(added.Versions), func(v apidiscovery.APIVersionDiscovery) bool {
			return slices.ContainsFunc(own, func(o apidiscovery.APIVersionDiscovery) bool { return o.Version == v.Version })
		}), own...)
	}
	return merged
}

// tidy makes the lists of resources equal to those of upstream: a resource of
// the list's own version does not repeat it, and has a hash of the version in
// which it is stored.
func tidy(lists map[schema.GroupVersion]*metav1.APIResourceList, objects []*apiextensionsv1.CustomResourceDefinition) {
	stored := map[schema.GroupResource]string{}
	for _, object := range objects {
		for _, v := range object.Spec.Versions {
			if v.Storage {
				group, names := object.Spec.Group, object.Spec.Names
				stored[schema.GroupResource{Group: group, Resource: names.Plural}] = discovery.StorageVersionHash(group, v.Name, names.Kind)
			}
		}
	}
	for version, list := range lists {
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if resource.Group == version.Group && resource.Version == version.Version {
				resource.Group, resource.Version = "", ""
			}
			resource.StorageVersionHash = stored[schema.GroupResource{Group: version.Group, Resource: resource.Name}]
		}
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// serveGroups serves the list of groups in all its forms, and single groups.
func (c *Chain) serveGroups(from added, w http.ResponseWriter, r *http.Request) {
	found, err := c.groupsOf(r.Context(), from)
	parts := splitPath(r.URL.Path)
	switch {
	case err != nil:
		unavailable(w, r, err)
	case len(parts) == 1:
		aggregated.WrapAggregatedDiscoveryToHandler(c.groupList(found), c.aggregatedGroups(found.all, found.tag), nil).ServeHTTP(w, r)
	case found.added[parts[1]]:
		at := slices.IndexFunc(found.list, func(g metav1.APIGroup) bool { return g.Name == parts[1] })
		discovery.NewAPIGroupHandler(apiextensionsserver.Codecs, found.list[at]).ServeHTTP(w, r)
	default:
		c.builtIn.apis.ServeHTTP(w, r)
	}
}

// groupList serves the groups without their resources.
func (c *Chain) groupList(found *groups) http.Handler {
	root := discovery.NewRootAPIsHandler(c.generic.DiscoveryAddresses, apiextensionsserver.Codecs)
	for _, group := range found.list {
		root.AddGroup(group)
	}
	return root
}

// aggregatedGroups serves the groups with their resources.
func (c *Chain) aggregatedGroups(all []apidiscovery.APIGroupDiscovery, tag string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		codecs := c.builtIn.discovery.codecs
		mediaType, _, err := negotiation.NegotiateOutputMediaType(r, codecs, aggregated.DiscoveryEndpointRestrictions)
		if err != nil || mediaType.Convert == nil {
			http.Error(w, "no such form of discovery", http.StatusNotAcceptable)
			return
		}
		aggregated.ServeHTTPWithETag(&apidiscovery.APIGroupDiscoveryList{Items: all}, tag,
			mediaType.Convert.GroupVersion(), codecs, w, r)
	})
}

// serveVersion serves the list of the custom resources of a version.
func (c *Chain) serveVersion(from added, w http.ResponseWriter, r *http.Request) {
	found, err := c.groupsOf(r.Context(), from)
	if err != nil {
		unavailable(w, r, err)
		return
	}
	parts := splitPath(r.URL.Path)
	version := schema.GroupVersion{Group: parts[1], Version: parts[2]}
	list := found.resources[version]
	if list == nil {
		http.NotFound(w, r)
		return
	}
	lister := discovery.APIResourceListerFunc(func() []metav1.APIResource { return list.APIResources })
	discovery.NewAPIVersionHandler(apiextensionsserver.Codecs, version, lister).ServeHTTP(w, r)
}
