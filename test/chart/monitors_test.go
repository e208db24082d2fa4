package chart

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// TestServiceMonitors: each component has a ServiceMonitor, which selects one
// Service with the port of its metrics. Programs that authorize clients are
// scraped with a token, over HTTPS.
func TestServiceMonitors(t *testing.T) {
	objects := mustRender(t, everything)
	services := typed[corev1.Service](t, objects, "Service")
	policies := typed[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy")
	for name, workload := range workloads(t, objects) {
		monitor := objects["ServiceMonitor "+name]
		if monitor == nil {
			t.Errorf("%s has no ServiceMonitor", name)
			continue
		}
		if got := monitor.GetLabels()["release"]; got != "prometheus" {
			t.Errorf("the ServiceMonitor of %s has no label of the values: %v", name, monitor.GetLabels())
		}
		selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
		var scraped []corev1.Service
		for _, service := range services {
			hasPort := slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "metrics" })
			if hasPort && labels.SelectorFromSet(selector).Matches(labels.Set(service.Labels)) {
				scraped = append(scraped, *service)
			}
		}
		if len(scraped) != 1 {
			t.Errorf("the ServiceMonitor of %s selects %d Services", name, len(scraped))
			continue
		}
		if !labels.SelectorFromSet(scraped[0].Spec.Selector).Matches(labels.Set(workload.template.Labels)) {
			t.Errorf("Service %s does not select the pods of %s", scraped[0].Name, name)
		}
		checkEndpoint(t, name, monitor)
		if !allowsMetrics(policies[name]) {
			t.Errorf("the NetworkPolicy of %s does not allow its metrics", name)
		}
	}
}

// checkEndpoint checks how a component is scraped.
func checkEndpoint(t *testing.T, name string, monitor *unstructured.Unstructured) {
	t.Helper()
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	endpoint, _ := endpoints[0].(map[string]any)
	if len(endpoints) != 1 || endpoint["port"] != "metrics" || endpoint["interval"] != "30s" {
		t.Errorf("%s is scraped at %v", name, endpoints)
	}
	open := name == "vc-store" || name == "vc-dns" // metrics without a certificate, behind a NetworkPolicy
	if isHTTPS := endpoint["scheme"] == "https" && endpoint["bearerTokenFile"] != nil; isHTTPS == open {
		t.Errorf("%s is scraped with %v", name, endpoint)
	}
}

// allowsMetrics reports whether pods of tenants, and they alone, do not reach
// the port of metrics.
func allowsMetrics(policy *networkingv1.NetworkPolicy) bool {
	if policy == nil {
		return false
	}
	return slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		return len(rule.Ports) == 1 && rule.Ports[0].Port.String() == "metrics" && len(rule.From) == 1 &&
			slices.ContainsFunc(rule.From[0].NamespaceSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
				return r.Key == "tenancy.x-k8s.io/vcname" && r.Operator == metav1.LabelSelectorOpDoesNotExist
			})
	})
}
