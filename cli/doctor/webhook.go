package doctor

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/installation"
)

// webhook is a webhook of the installation.
type webhook struct {
	// configuration is the name of its ValidatingWebhookConfiguration.
	configuration string
	// component serves it, and secret has its certificate.
	component, secret string
}

// The webhooks, whose certificates are made by their components; that of vc-manager
// may be from cert-manager.
var (
	managerWebhook = webhook{"vc-manager", installation.Manager, "vc-manager-webhook"}
	limitsWebhook  = webhook{"vc-syncer", installation.Syncer, "vc-syncer-webhook"}
)

// check checks whether the apiserver accepts the certificate of the webhook.
func (w webhook) check(ctx context.Context, s *Super) Result {
	have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := s.Client.Get(ctx, client.ObjectKey{Name: w.configuration}, have)
	if apierrors.IsNotFound(err) {
		return skipped("not a part of this installation")
	}
	if err != nil {
		return unread(fmt.Errorf("get ValidatingWebhookConfiguration %s: %w", w.configuration, err))
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Installation, Name: w.secret}
	if err := s.Client.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return unread(fmt.Errorf("get Secret %s: %w", key, err))
	}
	return w.verdict(have, secret.Data, time.Now())
}

// verdict judges by the configuration and the content of the Secret with the
// certificate.
func (w webhook) verdict(c *admissionregistrationv1.ValidatingWebhookConfiguration, secret map[string][]byte, now time.Time) Result {
	next := "Delete the Secret " + w.secret + ", and " + w.component + " makes another certificate; " +
		"one of cert-manager: see the status of the Certificate of the same name"
	certificate := secret[corev1.TLSCertKey]
	if len(certificate) == 0 {
		return failed("See the log of "+w.component+", which makes it", "Secret %s has no certificate", w.secret)
	}
	if r, wrong := expiry("the certificate", certificate, now); wrong {
		r.Next = next
		return r
	}
	if err := pairProblem(certificate, secret[corev1.TLSPrivateKeyKey]); err != nil {
		return failed(next, "%v", err)
	}
	for i := range c.Webhooks {
		each := &c.Webhooks[i]
		service := each.ClientConfig.Service
		if service == nil {
			continue
		}
		name := service.Name + "." + service.Namespace + ".svc"
		if err := signatureProblem(certificate, each.ClientConfig.CABundle, name, now); err != nil {
			return failed(next, "webhook %s: %v", each.Name, err)
		}
	}
	return ok("the apiserver accepts its certificate")
}
