package chain

import (
	"cmp"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// customGroups returns the groups of custom resources, by name. It repeats what
// upstream's controller of discovery computes from definitions.
func customGroups(objects []*apiextensionsv1.CustomResourceDefinition) []apidiscovery.APIGroupDiscovery {
	byGroup := map[string]map[string][]apidiscovery.APIResourceDiscovery{}
	for _, object := range objects {
		if !apihelpers.IsCRDConditionTrue(object, apiextensionsv1.Established) {
			continue
		}
		for _, v := range object.Spec.Versions {
			if !v.Served {
				continue
			}
			versions := byGroup[object.Spec.Group]
			if versions == nil {
				versions = map[string][]apidiscovery.APIResourceDiscovery{}
				byGroup[object.Spec.Group] = versions
			}
			versions[v.Name] = append(versions[v.Name], resourceOf(object, v))
		}
	}
	found := make([]apidiscovery.APIGroupDiscovery, 0, len(byGroup))
	for name, versions := range byGroup {
		group := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for v, resources := range versions {
			slices.SortFunc(resources, func(a, b apidiscovery.APIResourceDiscovery) int { return cmp.Compare(a.Resource, b.Resource) })
			group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{
				Version: v, Resources: resources, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
			})
		}
		slices.SortFunc(group.Versions, func(a, b apidiscovery.APIVersionDiscovery) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version) // preferred ones first
		})
		found = append(found, group)
	}
	slices.SortFunc(found, func(a, b apidiscovery.APIGroupDiscovery) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// resourceOf returns the resource of a definition.
func resourceOf(
	object *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion,
) apidiscovery.APIResourceDiscovery {
	names := object.Status.AcceptedNames
	kind := &metav1.GroupVersionKind{Group: object.Spec.Group, Version: v.Name, Kind: names.Kind}
	resource := apidiscovery.APIResourceDiscovery{
		Resource: names.Plural, SingularResource: names.Singular, ResponseKind: kind, Scope: apidiscovery.ScopeCluster,
		Verbs:      metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"},
		ShortNames: names.ShortNames, Categories: names.Categories,
	}
	if object.Spec.Scope == apiextensionsv1.NamespaceScoped {
		resource.Scope = apidiscovery.ScopeNamespace
	}
	if !apihelpers.IsCRDConditionTrue(object, apiextensionsv1.Terminating) {
		resource.Verbs = append(resource.Verbs, "create", "patch", "update")
	}
	if v.Subresources == nil {
		return resource
	}
	verbs := metav1.Verbs{"get", "patch", "update"}
	if v.Subresources.Status != nil {
		resource.Subresources = append(resource.Subresources,
			apidiscovery.APISubresourceDiscovery{Subresource: "status", ResponseKind: kind, Verbs: verbs})
	}
	if v.Subresources.Scale != nil {
		scale := &metav1.GroupVersionKind{Group: autoscalingv1.GroupName, Version: "v1", Kind: "Scale"}
		resource.Subresources = append(resource.Subresources,
			apidiscovery.APISubresourceDiscovery{Subresource: "scale", ResponseKind: scale, Verbs: verbs})
	}
	return resource
}
