package hosted

import (
	"context"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// bootstrap creates the RBAC roles and priority classes that every cluster has.
// The apiserver would do so in start hooks, whose failure shows only as an
// apiserver that does not become healthy; here it is an error. The hooks ignore
// their context, but give up after half a minute.
type bootstrap struct {
	hooks map[string]genericapiserver.PostStartHookFunc
	done  chan struct{}
	err   error // set before done is closed
}

// takeOverHooks prevents the apiserver from running the hooks itself.
func takeOverHooks(config *genericapiserver.Config) (*bootstrap, error) {
	hooks, err := chain.HooksOf(rbacrest.RESTStorageProvider{}, schedulingrest.RESTStorageProvider{})
	if err != nil {
		return nil, err
	}
	for name := range hooks {
		config.DisabledPostStartHooks.Insert(name)
	}
	return &bootstrap{hooks: hooks, done: make(chan struct{})}, nil
}

// newBootstrap returns a bootstrap with one hook.
func newBootstrap(name string, hook func(context.Context) error) *bootstrap {
	return &bootstrap{done: make(chan struct{}), hooks: map[string]genericapiserver.PostStartHookFunc{
		name: func(ctx genericapiserver.PostStartHookContext) error { return hook(ctx) },
	}}
}

// start runs the hooks in the background and closes done when all have
// returned.
func (b *bootstrap) start(ctx context.Context, loopback *rest.Config) {
	go func() { // until the hooks return
		defer close(b.done)
		b.err = chain.RunHooks(ctx, loopback, b.hooks)
	}()
}
