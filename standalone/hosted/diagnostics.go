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

// ownPaths returns the non-resource paths that concern one control plane only,
// each with all paths below it.
func ownPaths() []string {
	return []string{"/api", "/apis", "/openapi", "/version", "/livez", "/readyz", "/healthz", "/.well-known", "/openid"}
}

// hideProcess removes the endpoints that expose the whole process, and with it
// other control planes: metrics, profiles, flags, and the health of components
// on the loopback interface.
func hideProcess(config *app.Config) {
	for _, generic := range servers(config) {
		generic.EnableMetrics = false
		generic.EnableProfiling = false
		generic.Flagz = nil
	}
	outer := &config.Aggregator.GenericConfig.Config
	build := outer.BuildHandlerChainFunc
	outer.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return build(withOwnPathsOnly(handler), c)
	}
}

// withOwnPathsOnly responds with 404 unless a path concerns one control plane
// only. It runs after authentication and authorization.
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
