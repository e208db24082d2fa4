package app

import (
	"context"
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/converted"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	syncer "github.com/virtualcluster/virtualcluster/syncer/app"
)

// installConverted brings what converted tenants need in the super cluster to the
// version of this program.
func installConverted(ctx context.Context, super *rest.Config) error {
	objects, err := converted.Read()
	if err != nil {
		return err
	}
	return apply(ctx, super, objects...)
}

// limitConverted has the super cluster call the webhook of vc-syncer in this
// process, which limits what converted tenants have.
func limitConverted(ctx context.Context, super *rest.Config, options *syncer.Options) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find a port for the webhook of vc-syncer: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return fmt.Errorf("find a port for the webhook of vc-syncer: %w", err)
	}
	registration, err := converted.WebhookAt(address)
	if err != nil {
		return err
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(rbac.Namespace)
	options.QuotaValidation, options.ConvertedWebhookBindAddress = true, address
	options.ConvertedWebhook = types.NamespacedName{Namespace: rbac.Namespace, Name: webhookSecret}
	return apply(ctx, super, namespace, registration)
}

// webhookSecret has the certificate of the webhook, and is the name of the Lease of
// the process that answers.
const webhookSecret = "vc-syncer-webhook"

// apply applies objects to the super cluster.
func apply(ctx context.Context, super *rest.Config, objects ...*unstructured.Unstructured) error {
	c, err := client.New(super, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client for what converted tenants need: %w", err)
	}
	for _, object := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(name), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
