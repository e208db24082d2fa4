package provider

import (
	"errors"
	"fmt"

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
	_, lists, err := client.ServerGroupsAndResources()
	if err := c.unlessOthers(err); err != nil {
		return err
	}
	c.served = map[schema.GroupVersionKind]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("reading what the tenant's apiserver serves: %w", err)
		}
		for i := range list.APIResources {
			if gvk := version.WithKind(list.APIResources[i].Kind); c.scheme.Recognizes(gvk) {
				c.served[gvk] = true
			}
		}
	}
	return nil
}

// unlessOthers passes over an error of discovery that is about API groups which are not built in: apiservers of the tenant's own
// may stand behind them, and may be down.
func (c *Cluster) unlessOthers(err error) error {
	var failed *discovery.ErrGroupDiscoveryFailed
	if !errors.As(err, &failed) {
		return err
	}
	for version := range failed.Groups {
		if c.scheme.IsVersionRegistered(version) {
			return err
		}
	}
	return nil
}
