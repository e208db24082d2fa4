package hosted

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Controller is one of the controllers that can run beside an apiserver.
type Controller struct {
	// Name is the name that kube-controller-manager knows it by.
	Name string
	// build makes the controller ready to run. What it returns blocks until
	// the context ends.
	build func(ctx context.Context, env *environment) (func(context.Context), error)
}

// TenantControllers are the controllers of a tenant's control plane: those
// that work on API objects alone. Left out is what deals with nodes, and the
// collector of pods without a node, which would take a tenant's pods for lost.
func TenantControllers() []Controller {
	return slices.Concat(clusterControllers(), certificateControllers(), workloadControllers(), serviceControllers(), volumeControllers())
}

// SuperControllers are the controllers of the super cluster: the tenant's,
// those for pods on nodes, and the scheduler. Nothing here evicts pods.
func SuperControllers() []Controller {
	return slices.Concat(TenantControllers(), nodeControllers())
}

// manager runs the controllers of one control plane.
type manager struct {
	env     *environment
	cancel  context.CancelFunc
	running sync.WaitGroup
	// failed yields an error when a controller ends by itself.
	failed chan error
}

// startManager builds and starts the controllers, and then the informers that
// they asked for.
func startManager(ctx context.Context, controllers []Controller, env *environment) (*manager, error) {
	m := &manager{env: env, failed: make(chan error, len(controllers))}
	ctx, m.cancel = context.WithCancel(ctx)
	for _, controller := range controllers {
		run, err := controller.build(ctx, env)
		if err != nil {
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
		m.failed <- fmt.Errorf("the controller %s ended by itself", name)
	}
}

func (m *manager) stop() {
	m.cancel()
	m.running.Wait()
	m.env.shutdownInformers()
}
