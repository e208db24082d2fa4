package provider

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discover reads which of the built-in kinds the tenant's apiserver serves: an
// older or smaller apiserver may not serve all kinds that the syncer syncs, and
// a watch of a missing kind would never begin.
func (c *Cluster) discover() error {
	// The discovery client takes no context, and a timeout only from its HTTP
	// client.
	limited := *c.http
	limited.Timeout = probeTimeout
	client, err := discovery.NewDiscoveryClientForConfigAndClient(rest.CopyConfig(c.config), &limited)
	if err != nil {
		return fmt.Errorf("create the discovery client: %w", err)
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
	// Without aggregated discovery, only the built-in versions are read,
	// however many others the apiserver has.
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

// discoverVersion discovers the kinds of a built-in version that is not known
// yet. A version that is not found has none.
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
		return fmt.Errorf("discover the resources of %s: %w", version, err)
	}
	if list == nil {
		list = &metav1.APIResourceList{}
	}
	known[version] = list
	return nil
}

// unlessOthers returns an error if a built-in version has failed. Others may be
// served by the tenant's own aggregated apiservers, which may be down.
func (c *Cluster) unlessOthers(failed map[schema.GroupVersion]error) error {
	for version := range failed {
		if c.scheme.IsVersionRegistered(version) {
			return &discovery.ErrGroupDiscoveryFailed{Groups: failed}
		}
	}
	return nil
}
