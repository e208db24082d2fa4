package app

import (
	"crypto/tls"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/virtualcluster/virtualcluster/controllers/admission"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
)

// webhookCertificate returns what keeps the certificate of the webhook's
// Service; nil if it comes from a directory or there is no webhook.
func (o *Options) webhookCertificate() *servingcert.Keeper {
	service := o.WebhookService
	if service.Name == "" {
		return nil
	}
	return &servingcert.Keeper{
		Secret: service,
		Hosts:  servingcert.Hosts{DNSNames: []string{service.Name + "." + service.Namespace + ".svc"}},
	}
}

// webhookServer returns the server of the webhook, which a manager starts when a
// webhook is added to it.
func (o *Options) webhookServer(certificate *servingcert.Keeper) webhook.Server {
	options := webhook.Options{Port: o.WebhookPort, CertDir: o.WebhookCertDir}
	if certificate != nil {
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = certificate.GetCertificate })
	}
	return webhook.NewServer(options)
}

// addWebhook adds the webhook to a manager that has a certificate for it.
func (o *Options) addWebhook(mgr manager.Manager, certificate *servingcert.Keeper) error {
	if certificate != nil {
		registration := admission.NewRegistration(mgr)
		certificate.Publish, certificate.Watch = registration.Publish, registration.Object()
		if err := certificate.SetupWithManager(mgr, name); err != nil {
			return err
		}
	}
	if certificate == nil && o.WebhookCertDir == "" {
		return nil
	}
	return admission.SetupWithManager(mgr)
}
