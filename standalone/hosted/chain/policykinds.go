package chain

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
)

// policyKinds returns by what the registries of admission policies find the
// resource of a kind of parameters, which a user must be allowed to read. They
// ask without the context of the request, so they find built-in kinds only,
// which all tenants have. For custom resources, they require the permission
// for all resources of the API group.
func (c *Chain) policyKinds() (discovery.DiscoveryInterface, error) {
	builtIn := func(w http.ResponseWriter, r *http.Request) { c.builtIn.apis.ServeHTTP(w, r) }
	client, err := discovery.NewDiscoveryClientForConfig(inProcess(http.HandlerFunc(builtIn), ""))
	if err != nil {
		return nil, fmt.Errorf("create a client of the built-in APIs: %w", err)
	}
	return client, nil
}
