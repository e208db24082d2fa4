package hosted

import (
	"context"
	"errors"
	"fmt"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
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
	b := &bootstrap{hooks: map[string]genericapiserver.PostStartHookFunc{}, done: make(chan struct{})}
	for _, provider := range []genericapiserver.PostStartHookProvider{
		rbacrest.RESTStorageProvider{}, schedulingrest.RESTStorageProvider{},
	} {
		name, hook, err := provider.PostStartHook()
		if err != nil {
			return nil, fmt.Errorf("find the bootstrap hook %s: %w", name, err)
		}
		b.hooks[name] = hook
		config.DisabledPostStartHooks.Insert(name)
	}
	return b, nil
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
	var running sync.WaitGroup
	errs := make(chan error, len(b.hooks))
	for name, hook := range b.hooks {
		running.Go(func() {
			err := hook(genericapiserver.PostStartHookContext{LoopbackClientConfig: loopback, Context: ctx})
			errs <- wrapf(err, "run the bootstrap hook %s", name)
		})
	}
	go func() { // until the hooks return
		defer close(b.done)
		running.Wait()
		close(errs)
		for err := range errs {
			b.err = errors.Join(b.err, err)
		}
	}()
}
