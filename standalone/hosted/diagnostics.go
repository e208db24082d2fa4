package hosted

import (
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// identityHooks publish the host name of this machine in a Lease, and collect
// such Leases of other apiservers. A control plane has one apiserver, so that
// they serve no purpose.
var identityHooks = []string{"start-kube-apiserver-identity-lease-controller", "start-kube-apiserver-identity-lease-garbage-collector"}

// ownPaths are the paths beside resources that concern one control plane alone.
// A path covers those below it.
func ownPaths() []string {
	return []string{"/api", "/apis", "/openapi", "/version", "/livez", "/readyz", "/healthz", "/.well-known", "/openid"}
}

// hideProcess keeps a control plane from serving what belongs to the process,
// and would show other control planes: metrics, profiles, flags, and the health
// of components that listen on the loopback interface.
func hideProcess(config *app.Config) {
	for _, generic := range servers(config) {
		generic.EnableMetrics = false
		generic.EnableProfiling = false
		generic.Flagz = nil
		generic.DisabledPostStartHooks.Insert(identityHooks...)
	}
	outer := &config.Aggregator.GenericConfig.Config
	build := outer.BuildHandlerChainFunc
	outer.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(withOwnPathsOnly(handler), c)
	}
}

// withOwnPathsOnly answers that a path is not found unless it concerns one
// control plane alone. It follows the filters that authenticate and authorize.
func withOwnPathsOnly(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := apirequest.RequestInfoFrom(r.Context())
		if ok && isOwn(info) {
			handler.ServeHTTP(w, r)
			return
		}
		hidden := apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", "", 0, true)
		responsewriters.ErrorNegotiated(hidden, scheme.Codecs, schema.GroupVersion{}, w, r)
	})
}

func isOwn(info *apirequest.RequestInfo) bool {
	if info.IsResourceRequest {
		return info.APIGroup != "" || info.Resource != "componentstatuses"
	}
	return info.Path == "/" || slices.ContainsFunc(ownPaths(), func(own string) bool {
		return info.Path == own || strings.HasPrefix(info.Path, own+"/")
	})
}
