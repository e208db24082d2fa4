// Package webhook holds the manifests of the manager's webhook, for programs
// that install it.
package webhook

import (
	_ "embed"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

//go:embed validating_webhook.yaml
var manifest []byte

// Configuration says when the API server asks the manager.
func Configuration() (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(manifest, c); err != nil {
		return nil, fmt.Errorf("reading the embedded configuration of the webhook: %w", err)
	}
	return c, nil
}
