// Package converted holds the manifests that converted tenants need in the super
// cluster, for programs that install them.
package converted

import (
	"embed"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/virtualcluster/virtualcluster/config/internal/manifest"
)

//go:embed *_crd.yaml *_role.yaml *_policy.yaml
var manifests embed.FS

//go:embed webhook/role.yaml webhook/service.yaml webhook/validating_webhook.yaml
var webhook embed.FS

// Read returns the objects of the manifests, in the order in which they can be
// created.
func Read() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(manifests, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded manifests of converted tenants: %w", err)
	}
	return manifest.Read(manifests, files...)
}

// Webhook returns the objects of the webhook by which vc-syncer validates what
// converted tenants write.
func Webhook() ([]*unstructured.Unstructured, error) {
	return manifest.Read(webhook, "webhook/role.yaml", "webhook/service.yaml", "webhook/validating_webhook.yaml")
}

// WebhookAt returns the registration of the same webhook at a host and port, for a
// super cluster that reaches no Services.
func WebhookAt(address string) (*unstructured.Unstructured, error) {
	objects, err := manifest.Read(webhook, "webhook/validating_webhook.yaml")
	if err != nil {
		return nil, err
	}
	registration := objects[0]
	webhooks, _, err := unstructured.NestedSlice(registration.Object, "webhooks")
	if err != nil {
		return nil, fmt.Errorf("read the registration of the webhook for converted tenants: %w", err)
	}
	for _, each := range webhooks {
		fields, _ := each.(map[string]any)
		path, _, _ := unstructured.NestedString(fields, "clientConfig", "service", "path")
		fields["clientConfig"] = map[string]any{"url": "https://" + address + path}
	}
	return registration, unstructured.SetNestedSlice(registration.Object, webhooks, "webhooks")
}
