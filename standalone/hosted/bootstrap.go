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

// bootstrap makes the RBAC roles and priority classes that every cluster has.
// The apiserver would do it in start-up hooks, whose failure shows only in that
// the apiserver does not become healthy; here it is told. The hooks heed no
// context, but give up after half a minute.
type bootstrap struct {
	hooks map[string]genericapiserver.PostStartHookFunc
	done  chan struct{}
	err   error // set before done is closed
}

// takeOverHooks keeps the apiserver from running the hooks itself.
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

// start runs the hooks in the background and closes done when all are over.
func (b *bootstrap) start(ctx context.Context, loopback *rest.Config) {
	var running sync.WaitGroup
	errs := make(chan error, len(b.hooks))
	for name, hook := range b.hooks {
		running.Go(func() {
			err := hook(genericapiserver.PostStartHookContext{LoopbackClientConfig: loopback, Context: ctx})
			errs <- wrapf(err, "run the bootstrap hook %s", name)
		})
	}
	go func() { // ends with the hooks
		defer close(b.done)
		running.Wait()
		close(errs)
		for err := range errs {
			b.err = errors.Join(b.err, err)
		}
	}()
}
