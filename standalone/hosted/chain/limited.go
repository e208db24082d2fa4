package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// The verb of a resource that discovery does not show to a tenant that cannot
// use it. Objects from before can be read and deleted, which the controllers of
// namespaces and garbage find in discovery.
const (
	limitedResource = "daemonsets"
	limitedVerb     = "create"
)

// limitedVersion is the version of the resource.
var limitedVersion = appsv1.SchemeGroupVersion

// limitedDiscovery has the built-in groups without the verb, in all forms of
// discovery.
type limitedDiscovery struct {
	groups  []apidiscovery.APIGroupDiscovery
	tag     string
	version http.Handler
}

// limitDiscovery returns the built-in groups without the verb. The APIs serve
// the earlier form of discovery.
func limitDiscovery(ctx context.Context, b builtInDiscovery, apis http.Handler) (limitedDiscovery, error) {
	sum := sha256.Sum256([]byte(b.tag + limitedResource))
	limited := limitedDiscovery{groups: slices.Clone(b.groups), tag: hex.EncodeToString(sum[:])}
	for i := range limited.groups {
		if group := &limited.groups[i]; group.Name == limitedVersion.Group {
			*group = *group.DeepCopy()
			limitGroup(group)
		}
	}
	var list metav1.APIResourceList
	if _, err := readDocument(ctx, apis, "/apis/"+limitedVersion.String(), "application/json", &list); err != nil {
		return limited, err
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Name == limitedResource {
			r.Verbs = withoutLimited(r.Verbs)
		}
	}
	lister := discovery.APIResourceListerFunc(func() []metav1.APIResource { return list.APIResources })
	limited.version = discovery.NewAPIVersionHandler(legacyscheme.Codecs, limitedVersion, lister)
	return limited, nil
}

// limitGroup removes the verb from a group.
func limitGroup(group *apidiscovery.APIGroupDiscovery) {
	for i := range group.Versions {
		resources := group.Versions[i].Resources
		for j := range resources {
			if resources[j].Resource == limitedResource {
				resources[j].Verbs = withoutLimited(resources[j].Verbs)
			}
		}
	}
}

func withoutLimited(verbs []string) []string {
	return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return verb == limitedVerb })
}

// of returns the built-in groups as a tenant sees them, and their ETag.
func (b *builtInDiscovery) of(t *Tenant) (groups []apidiscovery.APIGroupDiscovery, tag string) {
	if t.spec.NoDaemonSets {
		return b.limited.groups, b.limited.tag
	}
	return b.groups, b.tag
}

// limited returns what serves a request for a built-in API.
func (c *Chain) limited(r *http.Request) http.Handler {
	if r.Method != http.MethodGet || r.URL.Path != "/apis/"+limitedVersion.String() {
		return c.builtIn.apis
	}
	if t, err := c.tenant(r.Context()); err != nil || !t.spec.NoDaemonSets {
		return c.builtIn.apis
	}
	return c.builtIn.discovery.limited.version
}
