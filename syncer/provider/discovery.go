package provider

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discover asks the tenant's apiserver which of the built-in kinds it has: an older or a smaller one has not all that the syncer
// carries, and a watch for what is missing would never begin.
func (c *Cluster) discover() error {
	config := rest.CopyConfig(c.config)
	config.Timeout = probeTimeout
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, c.http)
	if err != nil {
		return fmt.Errorf("making the discovery client: %w", err)
	}
	_, byVersion, _, err := client.GroupsAndMaybeResources()
	if err != nil {
		return err
	}
	c.served = map[schema.GroupVersionKind]bool{}
	for version, resources := range byVersion {
		for i := range resources.APIResources {
			if gvk := version.WithKind(resources.APIResources[i].Kind); c.scheme.Recognizes(gvk) {
				c.served[gvk] = true
			}
		}
	}
	return nil
}
