package webhook

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestProjectNamesTheWebhook: PROJECT, which kubebuilder reads, has a
// validating webhook for each kind that the configuration is for, and for no
// other.
func TestProjectNamesTheWebhook(t *testing.T) {
	data, err := os.ReadFile("../../PROJECT")
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Resources []struct {
			Kind     string `json:"kind"`
			Webhooks struct {
				Validation bool `json:"validation"`
			} `json:"webhooks"`
		} `json:"resources"`
	}
	if err := yaml.Unmarshal(data, &project); err != nil {
		t.Fatal(err)
	}
	configuration, err := Configuration()
	if err != nil {
		t.Fatal(err)
	}
	validated := map[string]bool{}
	for _, webhook := range configuration.Webhooks {
		for _, rule := range webhook.Rules {
			for _, resource := range rule.Resources {
				validated[resource] = true
			}
		}
	}
	plurals := map[string]string{
		"VirtualCluster": "virtualclusters", "ClusterVersion": "clusterversions",
		"ControlPlaneStore": "controlplanestores", "HostedControlPlane": "hostedcontrolplanes",
	}
	for _, resource := range project.Resources {
		if plural := plurals[resource.Kind]; resource.Webhooks.Validation != validated[plural] {
			t.Errorf("PROJECT says %v of a validating webhook for %s, and the configuration %v",
				resource.Webhooks.Validation, resource.Kind, validated[plural])
		}
	}
}
