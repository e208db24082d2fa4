package provider

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discover asks the tenant's apiserver which of the built-in kinds it has: an older or a smaller one has not all that the syncer
// carries, and a watch for what is missing would never begin.
func (c *Cluster) discover() error {
	// The discovery client takes no context, and a timeout only from its HTTP client.
	limited := *c.http
	limited.Timeout = probeTimeout
	client, err := discovery.NewDiscoveryClientForConfigAndClient(rest.CopyConfig(c.config), &limited)
	if err != nil {
		return fmt.Errorf("making the discovery client: %w", err)
	}
	groups, lists, failed, err := client.GroupsAndMaybeResources()
	if err != nil {
		return err
	}
	if err := c.unlessOthers(failed); err != nil {
		return err
	}
	if lists == nil {
		lists = map[schema.GroupVersion]*metav1.APIResourceList{}
	}
	// Without aggregated discovery, an apiserver is asked for the built-in versions alone, however many others it names.
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if err := c.discoverVersion(client, version.GroupVersion, lists); err != nil {
				return err
			}
		}
	}
	c.served = map[schema.GroupVersionKind]bool{}
	for version, list := range lists {
		for i := range list.APIResources {
			if gvk := version.WithKind(list.APIResources[i].Kind); c.scheme.Recognizes(gvk) {
				c.served[gvk] = true
			}
		}
	}
	return nil
}

// discoverVersion discovers the kinds of a built-in version that is not known yet. A version that is gone has none.
func (c *Cluster) discoverVersion(
	client *discovery.DiscoveryClient, name string, known map[schema.GroupVersion]*metav1.APIResourceList,
) error {
	version, err := schema.ParseGroupVersion(name)
	if err != nil {
		return nil //nolint:nilerr // no built-in version has such a name
	}
	if !c.scheme.IsVersionRegistered(version) || known[version] != nil {
		return nil
	}
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ask the tenant's apiserver what it serves of %s: %w", version, err)
	}
	if list == nil {
		list = &metav1.APIResourceList{}
	}
	known[version] = list
	return nil
}

// unlessOthers returns the failure of a version that is built in. Others may be served by the tenant's own aggregated apiservers,
// which may be down.
func (c *Cluster) unlessOthers(failed map[schema.GroupVersion]error) error {
	for version := range failed {
		if c.scheme.IsVersionRegistered(version) {
			return &discovery.ErrGroupDiscoveryFailed{Groups: failed}
		}
	}
	return nil
}
