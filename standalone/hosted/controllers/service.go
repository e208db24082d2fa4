package controllers

import (
	"context"

	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/servicecidrs"
)

const endpointsPerSlice = 100

// serviceControllers returns the controllers of endpoints and Service
// addresses.
func serviceControllers() []Controller {
	return []Controller{
		{"endpoints-controller", buildEndpoints},
		{"endpointslice-controller", buildEndpointSlices},
		{"endpointslice-mirroring-controller", buildEndpointSliceMirroring},
		{"service-cidr-controller", buildServiceCIDRs},
	}
}

func buildEndpoints(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c := endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), withoutLeftovers{core.Endpoints()}, env.client, 0)
	return workers(2, c), nil
}

func buildEndpointSlices(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		env.typed.Discovery().V1().EndpointSlices(), endpointsPerSlice, env.client, 0)
	return workers(2, c), nil
}

func buildEndpointSliceMirroring(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c := endpointslicemirroring.NewController(ctx, core.Endpoints(), env.typed.Discovery().V1().EndpointSlices(),
		core.Services(), endpointsPerSlice, env.client, 0)
	return workers(1, c), nil
}

func buildServiceCIDRs(ctx context.Context, env *Environment) (func(context.Context), error) {
	networking := env.typed.Networking().V1()
	c := servicecidrs.NewController(ctx, networking.ServiceCIDRs(), networking.IPAddresses(), env.client)
	return workers(1, c), nil
}
