package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/config/rbac"
)

// Route is a way to the apiserver of a tenant.
type Route struct {
	// Config is the configuration of the tenant's admin, with the server to
	// connect to.
	Config *rest.Config
	// Via describes the way for people; empty if the apiserver is reached
	// directly.
	Via string

	stop func() error
}

// Close ends the route.
func (r *Route) Close() error {
	if r.stop == nil {
		return nil
	}
	return r.stop()
}

// Open finds a way to the apiserver of a tenant: its own address, the gateway, or
// a port forwarded to the pod behind it.
func Open(
	ctx context.Context, super client.Reader, superConfig *rest.Config, vc *tenancyv1alpha1.VirtualCluster, admin *rest.Config,
) (*Route, error) {
	direct := Reach(ctx, admin)
	if direct == nil {
		return &Route{Config: admin}, nil
	}
	if r, err := OpenGateway(ctx, super, vc); err == nil {
		return r, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r, err := forwarded(ctx, super, superConfig, vc, admin)
	if err != nil {
		return nil, &exit.Error{
			Code: exit.Unreachable,
			Err:  fmt.Errorf("reach tenant %s/%s: %w; forward a port: %w", vc.Namespace, vc.Name, direct, err),
			Next: fmt.Sprintf("See whether its control plane is ready: kubectl vc describe %s -n %s", vc.Name, vc.Namespace),
		}
	}
	return r, nil
}

// OpenGateway returns the way through the gateway.
func OpenGateway(ctx context.Context, super client.Reader, vc *tenancyv1alpha1.VirtualCluster) (*Route, error) {
	config, err := Gateway(ctx, super, vc)
	if err != nil {
		return nil, err
	}
	if err := Reach(ctx, config); err != nil {
		return nil, &exit.Error{
			Code: exit.Unreachable, Err: fmt.Errorf("reach tenant %s/%s through the gateway: %w", vc.Namespace, vc.Name, err),
			Next: "See whether the gateway is ready: kubectl get deployment " + rbac.Gateway + " -n " + rbac.Namespace,
		}
	}
	return &Route{Config: config, Via: "the gateway " + config.Host}, nil
}

// forwarded returns a route through the super cluster's apiserver.
func forwarded(
	ctx context.Context, super client.Reader, superConfig *rest.Config, vc *tenancyv1alpha1.VirtualCluster, admin *rest.Config,
) (*Route, error) {
	internal, err := Internal(ctx, super, vc)
	if err != nil {
		return nil, err
	}
	to, err := findBackend(ctx, super, admin.Host, internal.Host, vc.Status.PodEndpoint)
	if err != nil {
		return nil, err
	}
	address, stop, err := Forward(ctx, superConfig, to)
	if err != nil {
		return nil, err
	}
	config, err := through(admin, address)
	if err == nil {
		err = Reach(ctx, config)
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &Route{Config: config, Via: fmt.Sprintf("pod %s/%s", to.Namespace, to.Pod), stop: stop}, nil
}

// findBackend finds the pod behind the first of the servers that leads to one.
func findBackend(ctx context.Context, super client.Reader, servers ...string) (Backend, error) {
	var failed []error
	for i, server := range servers {
		if server == "" || slices.Contains(servers[:i], server) {
			continue
		}
		address, err := Address(server)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		to, err := FindBackend(ctx, super, address)
		if err == nil {
			return to, nil
		}
		failed = append(failed, err)
	}
	return Backend{}, errors.Join(failed...)
}

// through returns the configuration with another address. The certificate is
// verified for the name that it was verified for before.
func through(config *rest.Config, address string) (*rest.Config, error) {
	own, err := Address(config.Host)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(own)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Host = "https://" + address
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config, nil
}
