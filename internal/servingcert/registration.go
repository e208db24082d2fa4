package servingcert

import (
	"bytes"
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Registration is the ValidatingWebhookConfiguration by which apiservers call the
// webhook of a program.
type Registration struct {
	name   string
	client client.Client
	live   client.Reader
}

// NewRegistration returns the registration of that name in the cluster of a
// manager.
func NewRegistration(mgr manager.Manager, name string) Registration {
	return Registration{name: name, client: mgr.GetClient(), live: mgr.GetAPIReader()}
}

// Object returns the configuration with its name and nothing else.
func (r Registration) Object() client.Object {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
}

// Publish makes apiservers verify the webhook by authorities in PEM.
func (r Registration) Publish(ctx context.Context, authorities []byte) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: r.name}, configuration); err != nil {
		return fmt.Errorf("get ValidatingWebhookConfiguration %s, which the installation has: %w", r.name, err)
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
	if err := r.client.Patch(ctx, configuration, patch, client.FieldOwner(r.name)); err != nil {
		return fmt.Errorf("patch ValidatingWebhookConfiguration %s: %w", r.name, err)
	}
	return nil
}
