package hosted

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/controllers"
)

// Controller is a controller that can run beside an apiserver.
type Controller = controllers.Controller

// TenantControllers returns the controllers of a tenant's control plane that
// does not run DaemonSets.
func TenantControllers() []Controller { return controllers.Tenant() }

// SuperControllers returns the controllers of the super cluster.
func SuperControllers() []Controller { return controllers.Super() }

// KubeletControllers returns the controllers for a super cluster whose nodes
// have kubelets.
func KubeletControllers() []Controller { return controllers.Kubelet() }

// manager runs the controllers of a control plane.
type manager interface {
	// Failed receives an error that ends the control plane.
	Failed() <-chan error
	// Stop stops the controllers.
	Stop()
}

// startControllers starts the controllers of a control plane: by need in a
// handler chain, and all at once beside upstream's kube-apiserver.
func (c *ControlPlane) startControllers(ctx context.Context, server *apiServer) (manager, error) {
	cluster, err := c.cluster(server)
	if err != nil {
		return nil, err
	}
	if server.views != nil {
		started := controllers.StartByNeed(ctx, c.spec.Controllers, controllers.Options{
			Tenant: c.spec.Name, Cluster: cluster, Views: server.views, Changes: c.chains.changes, OnFailure: c.chains.report,
		})
		c.byNeed.Store(started)
		return started, nil
	}
	env, err := controllers.NewEnvironment(cluster, server.informers)
	if err != nil {
		return nil, err
	}
	started, err := controllers.Start(ctx, c.spec.Controllers, env)
	if err != nil {
		return nil, err // not a manager that is nil
	}
	return started, nil
}

// FailingControllers returns the errors of controllers that do not work, by
// their names, and of stored objects that cannot be decoded, which controllers
// skip. Controllers that run all at once end the control plane instead.
func (c *ControlPlane) FailingControllers() map[string]error {
	running := c.byNeed.Load()
	if running == nil {
		return nil
	}
	failing := c.chains.damages.of(c.spec.Name, c.chains.store.feed)
	maps.Copy(failing, running.Failing())
	return failing
}

// cluster returns what the controllers of a control plane work with.
func (c *ControlPlane) cluster(server *apiServer) (controllers.Cluster, error) {
	config, client := server.loopback, server.client
	if c.guard != nil {
		config = rest.CopyConfig(config)
		c.guard(config)
		var err error
		if client, err = kubernetes.NewForConfig(config); err != nil {
			return controllers.Cluster{}, fmt.Errorf("create a client of the controllers: %w", err)
		}
	}
	return controllers.Cluster{
		Config: config, Client: client, APIs: server.apis,
		Authority: c.creds.authority, Validity: c.creds.validity, SigningKey: c.creds.signingKey, Discovery: c.discovery,
	}, nil
}
