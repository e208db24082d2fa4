package chain

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// builtIn is what the APIs of all tenants have in common.
type builtIn struct {
	apis    http.Handler
	schemas map[string]*spec.Schema // to which custom resources refer
	// described is the same for all chains of a process.
	*described
}

// described describes the built-in APIs. It never changes.
type described struct {
	discovery builtInDiscovery
	openAPI   builtInOpenAPI
	services  map[string]*apiregistrationv1.APIService // by name
}

// installExtensions adds the APIs by which tenants add APIs.
func (c *Chain) installExtensions(server *genericapiserver.GenericAPIServer) error {
	return errors.Join(c.installDefinitions(server), c.installAPIServices(server))
}

// added has the parts that serve the APIs that a tenant has added. Each is nil
// if the tenant needs none.
type added struct {
	tenant *Tenant
	custom *customResources
	remote *apiAggregator
}

// addedBy returns these parts of a request's tenant.
func (c *Chain) addedBy(ctx context.Context) (found added, err error) {
	if found.tenant, err = c.tenant(ctx); err != nil {
		return found, err
	}
	if found.custom, err = found.tenant.extensions.get(ctx); err != nil {
		return found, err
	}
	if found.remote, err = found.tenant.aggregation.get(ctx); err != nil {
		return found, err
	}
	if found.custom != nil {
		err = found.custom.ready(ctx, errUnreadable)
	}
	if found.remote != nil {
		found.remote.used()
		err = errors.Join(err, found.remote.ready(ctx, errUnknownAPIServices))
	}
	return found, err
}

// serveAPIs serves the APIs of a tenant: the built-in ones, and those that the
// tenant has added.
func (c *Chain) serveAPIs(w http.ResponseWriter, r *http.Request) {
	if CallsWebhook(r.Context()) {
		c.serveWebhook(w, r)
		return
	}
	serve := c.different(r.URL.Path)
	if serve == nil {
		c.limited(r).ServeHTTP(w, r)
		return
	}
	found, err := c.addedBy(r.Context())
	switch {
	case err != nil:
		unavailable(w, r, err)
	case found.custom == nil && found.remote == nil:
		c.serveBuiltIn(found.tenant, w, r)
	default:
		serve(found, w, r)
	}
}

// serveBuiltIn serves the built-in APIs of a path that is different for a tenant
// that has added APIs.
func (c *Chain) serveBuiltIn(t *Tenant, w http.ResponseWriter, r *http.Request) {
	switch parts := splitPath(r.URL.Path); {
	case parts[0] == "openapi":
		c.builtIn.openAPI.served.ServeHTTP(w, r)
	case len(parts) == 1 && t.spec.NoDaemonSets:
		limited := c.builtIn.discovery.limited
		aggregated.WrapAggregatedDiscoveryToHandler(c.builtIn.apis, c.aggregatedGroups(limited.groups, limited.tag), nil).ServeHTTP(w, r)
	default:
		c.builtIn.apis.ServeHTTP(w, r)
	}
}

// apisSegment begins the paths of all groups of APIs.
const apisSegment = "apis"

// different returns what serves a path that is different for a tenant that has
// added APIs, or nil for another path.
func (c *Chain) different(path string) func(added, http.ResponseWriter, *http.Request) {
	parts := splitPath(path)
	switch _, isAdded := c.addedVersion(path); {
	case isAdded:
		return c.serveAdded
	case parts[0] == apisSegment && len(parts) <= 2:
		return c.serveGroups
	case parts[0] == "openapi":
		return c.serveOpenAPI
	default:
		return nil
	}
}

// addedVersion returns the version of a group in a path, unless it is built in.
func (c *Chain) addedVersion(path string) (version schema.GroupVersion, ok bool) {
	parts := splitPath(path)
	if parts[0] != apisSegment || len(parts) <= 2 || c.builtIn.discovery.has(parts[1], parts[2]) {
		return version, false
	}
	return schema.GroupVersion{Group: parts[1], Version: parts[2]}, true
}

// serveAdded serves a version of a group that is not built in.
func (c *Chain) serveAdded(found added, w http.ResponseWriter, r *http.Request) {
	info, ok := apirequest.RequestInfoFrom(r.Context())
	parts := splitPath(r.URL.Path)
	if remote := found.remoteAPI(schema.GroupVersion{Group: parts[1], Version: parts[2]}); remote != nil {
		remote.ServeHTTP(w, r)
		return
	}
	switch {
	case found.custom == nil:
		http.NotFound(w, r)
	case ok && info.IsResourceRequest:
		found.custom.resources.ServeHTTP(w, r)
	case len(parts) == 3:
		c.serveVersion(found, w, r)
	default:
		http.NotFound(w, r)
	}
}

// remoteAPI returns the aggregated API of a version, or nil.
func (a added) remoteAPI(version schema.GroupVersion) *remoteAPI {
	if a.remote == nil {
		return nil
	}
	return a.remote.of(version)
}

// report tells that a part of a tenant failed.
func (c *Chain) report(t *Tenant, err error) {
	if c.opts.OnFailure != nil {
		c.opts.OnFailure(t.spec.Name, err)
	}
}

// splitPath returns the parts of a path, of which there is at least one.
func splitPath(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// unavailable answers a request of which it is not known whether it can be
// served. Clients must not take a resource for missing.
func unavailable(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(apierrors.NewServiceUnavailable(err.Error()),
		legacyscheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}
