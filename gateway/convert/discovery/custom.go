package discovery

import (
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
)

// custom returns the groups of a tenant's CRDs, as an apiserver with these CRDs
// has them.
func custom(crds []*resources.CRD) []apidiscoveryv2.APIGroupDiscovery {
	var groups []apidiscoveryv2.APIGroupDiscovery
	for _, crd := range crds {
		if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				in := versionOf(groupOf(&groups, crd.Spec.Group), v.Name)
				in.Resources = append(in.Resources, customResource(crd, v))
			}
		}
	}
	return groups
}

// groupOf returns the group with a name, which it adds if there is none.
func groupOf(groups *[]apidiscoveryv2.APIGroupDiscovery, name string) *apidiscoveryv2.APIGroupDiscovery {
	i := slices.IndexFunc(*groups, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == name })
	if i < 0 {
		i = len(*groups)
		*groups = append(*groups, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return &(*groups)[i]
}

// versionOf returns the version of a group, which it adds in its place if there
// is none: the stable and newest one is the first.
func versionOf(group *apidiscoveryv2.APIGroupDiscovery, name string) *apidiscoveryv2.APIVersionDiscovery {
	i := slices.IndexFunc(group.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool {
		return version.CompareKubeAwareVersionStrings(v.Version, name) <= 0
	})
	if i < 0 {
		i = len(group.Versions)
	}
	if i == len(group.Versions) || group.Versions[i].Version != name {
		added := apidiscoveryv2.APIVersionDiscovery{Version: name, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		group.Versions = slices.Insert(group.Versions, i, added)
	}
	return &group.Versions[i]
}

// customResource returns a resource in a version. While its CRD is deleted, no
// objects can be created.
func customResource(crd *resources.CRD, v apiextensionsv1.CustomResourceDefinitionVersion) apidiscoveryv2.APIResourceDiscovery {
	names := crd.Status.AcceptedNames
	kind := metav1.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind}
	verbs := []string{"delete", "deletecollection", "get", "list", "watch"}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Terminating) {
		verbs = append(verbs, "create", "patch", "update")
	}
	resource := apidiscoveryv2.APIResourceDiscovery{
		Resource: names.Plural, SingularResource: names.Singular, ResponseKind: &kind, Scope: apidiscoveryv2.ScopeCluster,
		Verbs: verbs, ShortNames: names.ShortNames, Categories: names.Categories,
	}
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		resource.Scope = apidiscoveryv2.ScopeNamespace
	}
	resource.Subresources = customSubresources(v.Subresources, kind)
	return resource
}

func customSubresources(
	has *apiextensionsv1.CustomResourceSubresources, kind metav1.GroupVersionKind,
) []apidiscoveryv2.APISubresourceDiscovery {
	var found []apidiscoveryv2.APISubresourceDiscovery
	add := func(name string, kind metav1.GroupVersionKind) {
		found = append(found, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: name, ResponseKind: &kind, Verbs: []string{"get", "patch", "update"},
		})
	}
	if has != nil && has.Status != nil {
		add("status", kind)
	}
	if has != nil && has.Scale != nil {
		add("scale", metav1.GroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale")))
	}
	return found
}
