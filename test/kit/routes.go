package kit

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// GatewayGroup is the group of the Gateway API.
	GatewayGroup = "gateway.networking.k8s.io"
	// GatewayClass is the class of the Gateways of specs.
	GatewayClass = "example"
	// Edge is the namespace of the Gateways of specs.
	Edge = "edge"
	// PublicGateway is the name of the Gateway that is offered.
	PublicGateway = "public"
	// HiddenGateway is the name of one that is not.
	HiddenGateway = "hidden"
)

// gatewayCRDs are those of the Gateway API for Gateways and routes.
var gatewayCRDs = Upstream{"test/operators", "sigs.k8s.io/gateway-api", "config/crd/standard/*_[ght]*s.yaml"}

// InstallGateways installs the Gateway API in a super cluster, with an offered
// Gateway and another, and gives the syncer the permissions for routes, until
// the specs end.
func InstallGateways(ctx context.Context, super *local.SuperCluster) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "vc-syncer-routes", Labels: map[string]string{rbac.AggregateToSyncer: "true"}},
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{GatewayGroup}, Resources: []string{"httproutes", "grpcroutes", "tlsroutes"},
				Verbs: []string{"list", "watch", "get", "create", "patch", "delete"},
			},
			{APIGroups: []string{GatewayGroup}, Resources: []string{"gateways"}, Verbs: []string{"list", "watch"}},
		},
	}
	create := func(obj client.Object) {
		Create(ctx, super.Client, obj)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, obj))).To(Succeed()) })
	}
	create(role)
	create(Namespace(Edge))
	for _, d := range gatewayCRDs.Definitions(ctx) {
		DeferCleanup(func(ctx SpecContext) { ShouldVanish(ctx, super.Client, d) })
		create(d)
	}
	public := Gateway(PublicGateway)
	public.SetLabels(map[string]string{names.Public: "true"})
	for _, gateway := range []*unstructured.Unstructured{public, Gateway(HiddenGateway)} {
		Eventually(super.Client.Create).WithContext(ctx).WithArguments(gateway).WithTimeout(2 * Soon).Should(Succeed())
	}
}

// Gateway returns a Gateway with a listener for the routes of tenants.
func Gateway(name string) *unstructured.Unstructured {
	g := gatewayObject("Gateway", Edge, name)
	g.Object["spec"] = map[string]any{
		"gatewayClassName": GatewayClass,
		"listeners": []any{map[string]any{
			"name": "http", "port": int64(80), "protocol": "HTTP",
			"allowedRoutes": map[string]any{"namespaces": map[string]any{
				"from": "Selector", "selector": map[string]any{"matchExpressions": []any{
					map[string]any{"key": names.VCName, "operator": "Exists"},
				}},
			}},
		}},
	}
	return g
}

// Route returns a route of a kind for hosts, which is attached to the offered
// Gateway and leads to the Service web.
func Route(kind, ns, name string, hosts ...string) *unstructured.Unstructured {
	route := gatewayObject(kind, ns, name)
	spec := map[string]any{
		"parentRefs": []any{map[string]any{"namespace": Edge, "name": PublicGateway}},
		"rules":      []any{map[string]any{"backendRefs": []any{map[string]any{"name": "web", "port": int64(80)}}}},
	}
	for _, host := range hosts {
		named, _ := spec["hostnames"].([]any)
		spec["hostnames"] = append(named, host)
	}
	route.Object["spec"] = spec
	return route
}

// gatewayObject returns an object of the Gateway API.
func gatewayObject(kind, ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: GatewayGroup, Version: "v1", Kind: kind})
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// WithRoutes enables the sync of kinds of routes for a tenant.
func WithRoutes(kinds ...string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		if vc.Spec.Sync == nil {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{}
		}
		for _, kind := range kinds {
			vc.Spec.Sync.CustomResources = append(vc.Spec.Sync.CustomResources, tenancyv1alpha1.CustomResourceSync{
				Group: GatewayGroup, Version: "v1", Resource: strings.ToLower(kind) + "s", Direction: tenancyv1alpha1.SyncDown,
			})
		}
	}
}

// CreateRoute creates a route as soon as the tenant's apiserver serves its kind.
func CreateRoute(ctx context.Context, t *local.Tenant, route *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(t.Client.Create).WithContext(ctx).WithArguments(route).WithTimeout(2 * Soon).Should(Succeed())
}
