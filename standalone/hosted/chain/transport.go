package chain

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/inprocess"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// transport returns what sends requests to a handler in this process, as the
// control plane of a tenant itself. Without a tenant, the context of each request
// has it.
func transport(handler http.Handler, tenant string) *inprocess.Transport {
	return &inprocess.Transport{Handler: handler, Context: func(ctx context.Context) context.Context {
		ctx = context.WithValue(ctx, identityKey{}, itself())
		if tenant == "" {
			return ctx
		}
		return keyspace.NewContext(ctx, tenant)
	}}
}

// inProcess returns a client configuration for a handler.
func inProcess(handler http.Handler, tenant string) *rest.Config {
	return inprocess.Config(transport(handler, tenant))
}

type identityKey struct{}

// identityOf returns the user of a request that was sent inside this process. A
// request from outside cannot set it.
func identityOf(ctx context.Context) (user.Info, bool) {
	found, ok := ctx.Value(identityKey{}).(user.Info)
	return found, ok
}

// IsInternal reports whether the control plane itself sent a request, in this
// process.
func IsInternal(ctx context.Context) bool {
	_, internal := identityOf(ctx)
	return internal
}

// itself is the user as which a control plane sends requests to itself.
func itself() user.Info {
	return &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup}}
}
