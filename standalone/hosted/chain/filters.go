package chain

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// newFilters returns upstream's filters before the APIs. They authenticate and
// authorize requests. Each tenant has its own, because they keep state: that of
// impersonation, for example, remembers which user may act as which other one.
func (c *Chain) newFilters(t *Tenant) http.Handler {
	config := *c.generic
	config.Authentication.Authenticator = authenticator.RequestFunc(t.authenticate)
	config.Authentication.APIAudiences = t.spec.audiences()
	config.Authorization.Authorizer = t.authorizer()
	apis := c.apis
	if t.spec.Wrap != nil {
		apis = t.spec.Wrap(apis)
	}
	handler := genericapiserver.DefaultBuildHandlerChain(apis, &config)
	if t.spec.Filter == nil {
		return handler
	}
	return t.spec.Filter(handler, &config)
}
