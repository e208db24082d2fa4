package doctor

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webhookconfig "github.com/virtualcluster/virtualcluster/config/webhook"
)

// webhookSecret is the Secret with the serving certificate of the webhook, from
// vc-manager or from cert-manager.
const webhookSecret = "vc-manager-webhook"

// webhook checks whether the apiserver accepts the certificate of the webhook.
func webhook(ctx context.Context, s *Super) Result {
	want, err := webhookconfig.Configuration()
	if err != nil {
		return unread(err)
	}
	have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err = s.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return skipped("not a part of this installation")
	}
	if err != nil {
		return unread(fmt.Errorf("get ValidatingWebhookConfiguration %s: %w", want.Name, err))
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Installation, Name: webhookSecret}
	if err := s.Client.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
		return unread(fmt.Errorf("get Secret %s: %w", key, err))
	}
	return webhookVerdict(have, secret.Data, time.Now())
}

// webhookVerdict judges by the configuration and the content of the Secret with
// the certificate.
func webhookVerdict(c *admissionregistrationv1.ValidatingWebhookConfiguration, secret map[string][]byte, now time.Time) Result {
	const next = "Delete the Secret " + webhookSecret + ", and vc-manager makes another certificate; " +
		"one of cert-manager: see the status of the Certificate of the same name"
	certificate := secret[corev1.TLSCertKey]
	if len(certificate) == 0 {
		return failed("See the log of vc-manager, which makes it", "Secret %s has no certificate", webhookSecret)
	}
	if r, wrong := expiry("the certificate", certificate, now); wrong {
		r.Next = next
		return r
	}
	if err := pairProblem(certificate, secret[corev1.TLSPrivateKeyKey]); err != nil {
		return failed(next, "%v", err)
	}
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		service := w.ClientConfig.Service
		if service == nil {
			continue
		}
		name := service.Name + "." + service.Namespace + ".svc"
		if err := signatureProblem(certificate, w.ClientConfig.CABundle, name, now); err != nil {
			return failed(next, "webhook %s: %v", w.Name, err)
		}
	}
	return ok("the apiserver accepts its certificate")
}
