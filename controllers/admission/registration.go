package admission

import (
	"bytes"
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// ConfigurationName is the name of the ValidatingWebhookConfiguration in
// config/webhook.
const ConfigurationName = "vc-manager"

// Registration is the configuration by which apiservers call the webhook.
type Registration struct {
	client client.Client
	live   client.Reader
}

// NewRegistration returns the registration in the cluster of a manager.
func NewRegistration(mgr manager.Manager) Registration {
	return Registration{client: mgr.GetClient(), live: mgr.GetAPIReader()}
}

// Object returns the configuration with its name and nothing else.
func (Registration) Object() client.Object {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}}
}

// Publish makes apiservers verify the webhook by authorities in PEM.
func (r Registration) Publish(ctx context.Context, authorities []byte) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: ConfigurationName}, configuration); err != nil {
		return fmt.Errorf("get ValidatingWebhookConfiguration %s, which config/webhook has: %w", ConfigurationName, err)
	}
	was, changed := configuration.DeepCopy(), false
	for i := range configuration.Webhooks {
		bundle := &configuration.Webhooks[i].ClientConfig.CABundle
		changed = changed || !bytes.Equal(*bundle, authorities)
		*bundle = authorities
	}
	if !changed {
		return nil
	}
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, configuration, patch, client.FieldOwner("vc-manager")); err != nil {
		return fmt.Errorf("patch ValidatingWebhookConfiguration %s: %w", ConfigurationName, err)
	}
	return nil
}
