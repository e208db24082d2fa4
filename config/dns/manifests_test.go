package dns

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/virtualcluster/virtualcluster/controllers/shareddns"
)

// read returns the object of a file, without fields that its type does not have.
func read[T any](t *testing.T, file string) *T {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	obj := new(T)
	if err := yaml.UnmarshalStrict(data, obj); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return obj
}

// TestPodsAreSelected: the Service, the NetworkPolicy and the disruption budget
// are those of the Deployment's pods.
func TestPodsAreSelected(t *testing.T) {
	pods := labels.Set(read[appsv1.Deployment](t, "deployment.yaml").Spec.Template.Labels)
	for file, selector := range map[string]map[string]string{
		"service.yaml":           read[corev1.Service](t, "service.yaml").Spec.Selector,
		"network_policy.yaml":    read[networkingv1.NetworkPolicy](t, "network_policy.yaml").Spec.PodSelector.MatchLabels,
		"disruption_budget.yaml": read[policyv1.PodDisruptionBudget](t, "disruption_budget.yaml").Spec.Selector.MatchLabels,
	} {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(pods) {
			t.Errorf("%s selects %v, and the pods have %v", file, selector, pods)
		}
	}
}

// TestTenantsPortsAreOpen: the NetworkPolicy admits all clients to the ports that
// tenants get, for UDP and TCP, and to no others.
func TestTenantsPortsAreOpen(t *testing.T) {
	open := map[corev1.Protocol]bool{}
	for _, rule := range read[networkingv1.NetworkPolicy](t, "network_policy.yaml").Spec.Ingress {
		if len(rule.From) > 0 {
			continue
		}
		for _, port := range rule.Ports {
			if port.Port.IntValue() != shareddns.FirstPort || *port.EndPort != shareddns.LastPort {
				t.Errorf("open are %s to %d", port.Port, *port.EndPort)
			}
			open[*port.Protocol] = true
		}
	}
	if !open[corev1.ProtocolUDP] || !open[corev1.ProtocolTCP] {
		t.Errorf("open are %v", open)
	}
}

// TestResolversOfNodes: names of the super cluster are not looked up for tenants.
func TestResolversOfNodes(t *testing.T) {
	spec := read[appsv1.Deployment](t, "deployment.yaml").Spec.Template.Spec
	corefile := read[corev1.ConfigMap](t, "config.yaml").Data["Corefile"]
	if spec.DNSPolicy != corev1.DNSDefault || strings.Contains(corefile, "kubernetes") {
		t.Errorf("the DNS policy is %s, and the Corefile\n%s", spec.DNSPolicy, corefile)
	}
}
