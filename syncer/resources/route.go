package resources

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Names of the Gateway API.
const (
	gatewayGroup = "gateway.networking.k8s.io"
	gatewayKind  = "Gateway"
)

// Standing returns the custom resources of which the syncer reads all objects
// in the super cluster, whether a tenant syncs them or not: routes, which have
// their hosts to themselves, and Gateways, which tenants may be offered.
func Standing() []kinds.StandingResource {
	return []kinds.StandingResource{
		{Definition: "httproutes." + gatewayGroup, Direction: tenancyv1alpha1.SyncDown},
		{Definition: "grpcroutes." + gatewayGroup, Direction: tenancyv1alpha1.SyncDown},
		{Definition: "tlsroutes." + gatewayGroup, Direction: tenancyv1alpha1.SyncDown},
		{Definition: "gateways." + gatewayGroup, Direction: tenancyv1alpha1.SyncUp},
	}
}

// route returns a kind of the Gateway API that is synced down: routes, whose
// fields, references and hosts are checked. The other kinds of the group are
// rejected, since their references would not be checked.
func route(k kinds.Down[*unstructured.Unstructured], r kinds.CustomResource) kinds.Flow {
	fields, known := routeFields[r.GVK.Kind]
	if !known {
		k.Desired = func(kinds.View, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return nil, errNoRoute
		}
		return k
	}
	hosts := routeHosting(k.Name)
	k.Desired = func(v kinds.View, tenant *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := hosts.check(v, tenant); err != nil {
			return nil, err
		}
		if len(routeReferences(fields, tenant)) > maxBackends {
			return nil, errManyBackends
		}
		spec := runtime.DeepCopyJSONValue(tenant.Object["spec"])
		if err := fields.each("spec", spec, routeChecker{v}.check); err != nil {
			return nil, err
		}
		desired := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		desired.SetGroupVersionKind(r.GVK)
		return desired, nil
	}
	k.References = func(tenant *unstructured.Unstructured) []kinds.Reference { return routeReferences(fields, tenant) }
	k.Claims = hosts.claims
	return k
}

// maxBackends is the maximum number of Services that a route leads to.
const maxBackends = 500

var (
	errManyBackends = fmt.Errorf("it leads to more than %d Services; split it into several routes", maxBackends)
	errNoRoute      = errors.New("of the Gateway API, only HTTPRoutes, GRPCRoutes and TLSRoutes are synced to the super cluster")
)

// routeHosting is how the routes of a kind have hosts. A route without hosts
// has those of its Gateway's listeners.
func routeHosting(kind string) hosting[*unstructured.Unstructured] {
	return hosting[*unstructured.Unstructured]{kind: kind, of: routeHosts, hint: "name its hosts in spec.hostnames"}
}

// routeHosts returns the hosts of a route.
func routeHosts(route *unstructured.Unstructured) []string {
	hosts, _, err := unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
	if err != nil || len(hosts) == 0 {
		return []string{everyHost}
	}
	for i, host := range hosts {
		if host == "" {
			hosts[i] = everyHost
		}
	}
	return hosts
}

// routeReferences returns the Services that a route leads to. They are not
// required: a route is served without them, with errors. They are maxBackends
// and one at most.
func routeReferences(fields shape, route *unstructured.Unstructured) []kinds.Reference {
	var refs references
	// A route with other fields is rejected, so it needs no references.
	_ = fields.each("spec", route.Object["spec"], func(_ string, as role, ref map[string]any) error {
		if as == backend {
			refs.add(serviceKind, textOf(ref, "name"))
		}
		if len(refs) > maxBackends {
			return errManyBackends
		}
		return nil
	})
	return refs
}
