package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestIngress: an Ingress leads all names below the domain to vc-host, and ends no
// TLS.
func TestIngress(t *testing.T) {
	ingress := typed[networkingv1.Ingress](t, mustRender(t, everything), "Ingress")["vc-host"]
	if len(ingress.Spec.TLS) > 0 || *ingress.Spec.IngressClassName != "haproxy" || ingress.Annotations["haproxy-ingress.github.io/ssl-passthrough"] != "true" {
		t.Errorf("got %v", ingress)
	}
	var hosts []string
	for _, rule := range ingress.Spec.Rules {
		hosts = append(hosts, rule.Host)
		if to := rule.HTTP.Paths[0].Backend.Service; to.Name != "vc-host" || to.Port.Name != "apiservers" {
			t.Errorf("%s leads to %v", rule.Host, to)
		}
	}
	if want := []string{"*.tenants.example.com", "shop.example.org"}; !slices.Equal(hosts, want) {
		t.Errorf("got %v, want %v", hosts, want)
	}
}

// TestTLSRoute: a TLSRoute leads the same names to the port of the Service.
func TestTLSRoute(t *testing.T) {
	for version, values := range map[string]string{
		"v1": "", "v1alpha2": "apiVersion: v1alpha2, ",
	} {
		route := mustRender(t, "vcHost: {endpointDomain: a.example, gateway: {enabled: true, "+values+"parentRefs: [{name: tenants}], hostnames: [b.example]}}")["TLSRoute vc-host"]
		if route == nil || route.GetAPIVersion() != "gateway.networking.k8s.io/"+version {
			t.Fatalf("got %v", route)
		}
		want := map[string]any{
			"parentRefs": []any{map[string]any{"name": "tenants"}},
			"hostnames":  []any{"*.a.example", "b.example"},
			"rules":      []any{map[string]any{"backendRefs": []any{map[string]any{"name": "vc-host", "port": int64(443)}}}},
		}
		if diff := cmp.Diff(want, route.Object["spec"]); diff != "" {
			t.Error(diff)
		}
	}
}

// TestNothingIsExposedByDefault: the Service is reached inside the super cluster.
func TestNothingIsExposedByDefault(t *testing.T) {
	objects := mustRender(t, "")
	if objects["Ingress vc-host"] != nil || objects["TLSRoute vc-host"] != nil {
		t.Error("vc-host is exposed")
	}
	if service := typed[corev1.Service](t, objects, "Service")["vc-host"]; service.Spec.Type != corev1.ServiceTypeClusterIP || service.Spec.Ports[0].NodePort != 0 {
		t.Errorf("got %v", service.Spec)
	}
}

// hostArgs returns the flags of vc-host.
func hostArgs(t *testing.T, objects map[string]*unstructured.Unstructured) []string {
	t.Helper()
	return workloads(t, objects)["vc-host"].template.Spec.Containers[0].Args
}

// TestAddresses: the platform reaches control planes by the Service, whatever the
// address for clients is.
func TestAddresses(t *testing.T) {
	const inside = "--internal-address=vc-host.vc-system.svc:443"
	for values, want := range map[string][]string{
		"": {"--advertise-address=vc-host.vc-system.svc:443"},
		"vcHost: {advertiseAddress: \"a.example:6443\"}": {"--advertise-address=a.example:6443", inside},
		"vcHost: {endpointDomain: a.example}": {
			"--advertise-address=vc-host.vc-system.svc:443", inside, "--endpoint-domain=a.example", "--endpoint-port=443",
		},
	} {
		got := slices.DeleteFunc(hostArgs(t, mustRender(t, values)), func(arg string) bool {
			return !strings.Contains(arg, "-address=") && !strings.HasPrefix(arg, "--endpoint") || strings.HasPrefix(arg, "--pod") || strings.HasPrefix(arg, "--metrics")
		})
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", values, got, want)
		}
	}
}

// TestPodPorts: the NetworkPolicy opens the ports that vc-host uses.
func TestPodPorts(t *testing.T) {
	for values, want := range map[string][2]int32{"": {20000, 29999}, everything: {10000, 10999}} {
		objects := mustRender(t, values)
		policy := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")["vc-host"]
		port := policy.Spec.Ingress[1].Ports[0]
		if got := [2]int32{port.Port.IntVal, *port.EndPort}; got != want || len(policy.Spec.Ingress[1].From) > 0 {
			t.Errorf("got %v, want %v", policy.Spec.Ingress[1], want)
		}
		if len(policy.Spec.Ingress[0].From) != map[string]int{"": 0, everything: 4}[values] {
			t.Errorf("the apiservers are reached from %v", policy.Spec.Ingress[0].From)
		}
		if args := hostArgs(t, objects); !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--pod-ports=") }) {
			t.Errorf("the flags are %v", args)
		}
	}
}
