package command

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/access"
)

// tenant is a control plane that a command line names, with a way to it.
type tenant struct {
	target

	vc *tenancyv1alpha1.VirtualCluster
	// admin is the configuration of the tenant's admin as it is in the super
	// cluster.
	admin *rest.Config
	route *access.Route
	// objects is the client of the tenant's admin.
	objects client.Client
}

// open connects to the control plane of a tenant.
func (p *platform) open(ctx context.Context, name string) (*tenant, error) {
	return p.openBy(ctx, name, func(t *tenant) (*access.Route, error) {
		super, err := p.flags.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		return access.Open(ctx, t.client, super, t.vc, t.admin)
	})
}

// openGateway connects to the control plane of a tenant through the gateway.
func (p *platform) openGateway(ctx context.Context, name string) (*tenant, error) {
	return p.openBy(ctx, name, func(t *tenant) (*access.Route, error) { return access.OpenGateway(ctx, t.client, t.vc) })
}

// openBy connects to the control plane of a tenant by a route.
func (p *platform) openBy(ctx context.Context, name string, route func(*tenant) (*access.Route, error)) (*tenant, error) {
	found, vc, err := p.read(ctx, name)
	if err != nil {
		return nil, err
	}
	admin, err := access.Admin(ctx, found.client, vc)
	if err != nil {
		return nil, err
	}
	opened := &tenant{target: found, vc: vc, admin: admin}
	if opened.route, err = route(opened); err != nil {
		return nil, err
	}
	opened.objects, err = access.Client(ctx, opened.route.Config, client.Options{Scheme: scheme()})
	return opened, err
}

// close closes the connection. The output is complete by then, so that an error
// of it does not matter.
func (t *tenant) close() { _ = t.route.Close() }
