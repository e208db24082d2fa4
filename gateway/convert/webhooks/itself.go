package webhooks

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/inprocess"
)

// Itself returns the configuration of clients of a tenant's API in this process,
// as the tenant's cluster itself.
func Itself(api http.Handler) *rest.Config {
	return inprocess.Config(&inprocess.Transport{Handler: api, Context: asItself})
}

// asItself returns the context of a request that the tenant's cluster sends.
func asItself(ctx context.Context) context.Context {
	return request.WithUser(ctx, &user.DefaultInfo{
		Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup},
	})
}

// Current serves the API of a tenant as it is known when it is used; nil is one that
// is not served.
func Current(api func() http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		current := api()
		if current == nil {
			http.NotFound(w, r)
			return
		}
		current.ServeHTTP(w, r)
	})
}
