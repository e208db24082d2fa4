package controllers

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
	// Build prepares the controller. The returned function blocks until the
	// context ends.
	Build func(ctx context.Context, env *Environment) (func(context.Context), error)
}

// Tenant returns the controllers of a tenant's control plane: those that work on
// API objects only. It omits those for nodes, and the collector of pods without
// a node, which would consider a tenant's pods lost.
func Tenant() []Controller {
	return slices.Concat(clusterControllers(), certificateControllers(), workloadControllers(), serviceControllers(), volumeControllers())
}

// DaemonSets returns the controller that runs DaemonSets on the nodes that a
// control plane has.
func DaemonSets() Controller { return Controller{"daemonset-controller", buildDaemonSets} }

// Super returns the controllers of the super cluster: the tenant's, those for
// pods on nodes, and the scheduler. None of them evicts pods.
func Super() []Controller {
	return slices.Concat(Tenant(), nodeControllers())
}

// Manager runs controllers of one control plane, all at once.
type Manager struct {
	env     *Environment
	cancel  context.CancelFunc
	running sync.WaitGroup
	failed  chan error
}

// Start builds and starts controllers, and then the informers that they
// requested.
func Start(ctx context.Context, controllers []Controller, env *Environment) (*Manager, error) {
	m := &Manager{env: env, failed: make(chan error, len(controllers))}
	ctx, m.cancel = context.WithCancel(ctx)
	for _, controller := range controllers {
		run, err := controller.Build(ctx, env)
		if err != nil {
			m.cancel()
			close(env.started) // the collector and the quota controller wait for it, whatever their context
			m.Stop()
			return nil, fmt.Errorf("build the controller %s: %w", controller.Name, err)
		}
		m.running.Go(func() { m.run(ctx, controller.Name, run) })
	}
	env.startInformers(ctx)
	return m, nil
}

func (m *Manager) run(ctx context.Context, name string, run func(context.Context)) {
	run(ctx)
	if ctx.Err() == nil {
		m.failed <- fmt.Errorf("the controller %s exited by itself", name)
	}
}

// Failed receives an error when a controller exits by itself.
func (m *Manager) Failed() <-chan error { return m.failed }

// Stop stops the controllers.
func (m *Manager) Stop() {
	m.cancel()
	m.running.Wait()
	m.env.shutdownInformers()
}
