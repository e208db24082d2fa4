package chain

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// builtIn is what the APIs of all tenants have in common.
type builtIn struct {
	apis    http.Handler
	schemas map[string]*spec.Schema // to which custom resources refer

	discovery builtInDiscovery
	openAPI   builtInOpenAPI
}

// installExtensions adds the APIs by which tenants add APIs.
func (c *Chain) installExtensions(server *genericapiserver.GenericAPIServer) error {
	return c.installDefinitions(server)
}

// serveAPIs serves the APIs of a tenant: the built-in ones, and those that the
// tenant has added.
func (c *Chain) serveAPIs(w http.ResponseWriter, r *http.Request) {
	serve := c.different(r.URL.Path)
	if serve == nil {
		c.builtIn.apis.ServeHTTP(w, r)
		return
	}
	server, err := c.customResources(r)
	switch {
	case err != nil:
		unavailable(w, r, err)
	case server == nil:
		c.builtIn.apis.ServeHTTP(w, r)
	default:
		serve(server, w, r)
	}
}

// different returns what serves a path that is different for a tenant with
// custom resources, or nil for another path: above all the descriptions of APIs.
func (c *Chain) different(path string) func(*customResources, http.ResponseWriter, *http.Request) {
	switch parts := splitPath(path); {
	case parts[0] == "apis" && len(parts) <= 2:
		return c.serveGroups
	case parts[0] == "openapi":
		return c.serveOpenAPI
	case parts[0] == "apis" && c.builtIn.discovery.lacks(parts[1], parts[2]):
		return c.serveCustom // what is built in would not pass the request on
	default:
		return nil
	}
}

// serveRest serves what the built-in APIs do not: custom resources.
func (c *Chain) serveRest(w http.ResponseWriter, r *http.Request) {
	if splitPath(r.URL.Path)[0] != "apis" {
		http.NotFound(w, r)
		return
	}
	server, err := c.customResources(r)
	switch {
	case err != nil:
		unavailable(w, r, err)
	case server == nil:
		http.NotFound(w, r)
	default:
		c.serveCustom(server, w, r)
	}
}

// serveCustom serves custom resources and the lists of them.
func (c *Chain) serveCustom(server *customResources, w http.ResponseWriter, r *http.Request) {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	switch {
	case ok && info.IsResourceRequest:
		server.resources.ServeHTTP(w, r)
	case len(splitPath(r.URL.Path)) == 3:
		c.serveVersion(server, w, r)
	default:
		http.NotFound(w, r)
	}
}

// customResources returns the server of custom resources of a request's tenant,
// or nil if the tenant has none.
func (c *Chain) customResources(r *http.Request) (*customResources, error) {
	t, err := c.tenant(r.Context())
	if err != nil {
		return nil, err
	}
	server, err := t.extensions.get(r.Context())
	if err != nil || server == nil {
		return nil, err
	}
	return server, server.ready(r.Context())
}

// splitPath returns the parts of a path, of which there is at least one.
func splitPath(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// unavailable answers a request of which it is not known whether it can be
// served. Clients must not take a resource for missing.
func unavailable(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(apierrors.NewServiceUnavailable(err.Error()),
		legacyscheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}
