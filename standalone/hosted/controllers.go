package hosted

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Controller is a controller that can run beside an apiserver.
type Controller struct {
	// Name is the controller's name in kube-controller-manager.
	Name string
	// build prepares the controller. The returned function blocks until the
	// context ends.
	build func(ctx context.Context, env *environment) (func(context.Context), error)
}

// TenantControllers returns the controllers of a tenant's control plane: those
// that work on API objects only. It omits those for nodes, and the collector of
// pods without a node, which would consider a tenant's pods lost.
func TenantControllers() []Controller {
	return slices.Concat(clusterControllers(), certificateControllers(), workloadControllers(), serviceControllers(), volumeControllers())
}

// SuperControllers returns the controllers of the super cluster: the tenant's,
// those for pods on nodes, and the scheduler. None of them evicts pods.
func SuperControllers() []Controller {
	return slices.Concat(TenantControllers(), nodeControllers())
}

// manager runs the controllers of one control plane.
type manager struct {
	env     *environment
	cancel  context.CancelFunc
	running sync.WaitGroup
	// failed receives an error when a controller exits by itself.
	failed chan error
}

// startManager builds and starts the controllers, and then the informers that
// they requested.
func startManager(ctx context.Context, controllers []Controller, env *environment) (*manager, error) {
	m := &manager{env: env, failed: make(chan error, len(controllers))}
	ctx, m.cancel = context.WithCancel(ctx)
	for _, controller := range controllers {
		run, err := controller.build(ctx, env)
		if err != nil {
			m.cancel()
			close(env.started) // the collector and the quota controller wait for it, whatever their context
			m.stop()
			return nil, fmt.Errorf("build the controller %s: %w", controller.Name, err)
		}
		m.running.Go(func() { m.run(ctx, controller.Name, run) })
	}
	env.startInformers(ctx)
	return m, nil
}

func (m *manager) run(ctx context.Context, name string, run func(context.Context)) {
	run(ctx)
	if ctx.Err() == nil {
		m.failed <- fmt.Errorf("the controller %s exited by itself", name)
	}
}

func (m *manager) stop() {
	m.cancel()
	m.running.Wait()
	m.env.shutdownInformers()
}
