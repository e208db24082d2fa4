package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// secretFlag names the Secret in which vc-gateway keeps the certificate that it
// makes.
const secretFlag = "--tls-secret="

// admission is how the super cluster calls vc-gateway about objects of converted
// tenants. All of it but the client configurations may be nil.
type admission struct {
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
	gateway    *replicas
	// certificate is that which vc-gateway makes; empty for one of others.
	certificate []byte
}

// admissionWebhooks checks whether there is a gateway that answers the webhooks of
// converted tenants, which fail otherwise.
func admissionWebhooks(ctx context.Context, s *Super) Result {
	a, err := readAdmission(ctx, s)
	if err != nil {
		return unread(err)
	}
	return a.verdict(time.Now())
}

func readAdmission(ctx context.Context, s *Super) (a admission, err error) {
	key := client.ObjectKey{Name: names.ConvertedAdmission}
	a.mutating, err = found(ctx, s, key, &admissionregistrationv1.MutatingWebhookConfiguration{})
	if err != nil {
		return a, fmt.Errorf("get MutatingWebhookConfiguration %s: %w", names.ConvertedAdmission, err)
	}
	a.validating, err = found(ctx, s, key, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	if err != nil {
		return a, fmt.Errorf("get ValidatingWebhookConfiguration %s: %w", names.ConvertedAdmission, err)
	}
	a.gateway, err = workload{name: installation.Gateway}.read(ctx, s)
	if client.IgnoreNotFound(err) != nil {
		return a, err
	}
	key, ok := a.gateway.secret()
	if !ok {
		return a, nil
	}
	secret, err := found(ctx, s, key, &corev1.Secret{})
	if err != nil {
		return a, fmt.Errorf("get Secret %s: %w", key, err)
	}
	if secret != nil {
		a.certificate = secret.Data[corev1.TLSCertKey]
	}
	return a, nil
}

// secret returns the Secret with the certificate that a gateway makes; false if
// others make it. Then a Secret of before can be left, which nothing serves.
func (r *replicas) secret() (key client.ObjectKey, ok bool) {
	if r == nil {
		return key, false
	}
	for _, arg := range r.args {
		if value, is := strings.CutPrefix(arg, secretFlag); is {
			key.Namespace, key.Name, ok = strings.Cut(value, "/")
		}
	}
	return key, ok
}

// found reads an object; nil if there is none.
func found[T client.Object](ctx context.Context, s *Super, key client.ObjectKey, into T) (none T, _ error) {
	if err := s.Client.Get(ctx, key, into); err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// verdict judges by the registration and by the gateway.
func (a admission) verdict(now time.Time) Result {
	switch {
	case a.mutating == nil && a.validating == nil:
		return skipped("no converted tenant has had webhooks or policies")
	case a.gateway == nil:
		return failed("Install vc-gateway again, or delete the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration "+
			names.ConvertedAdmission, "the super cluster calls vc-gateway about objects of converted tenants, and it does not exist")
	case a.mutating == nil || a.validating == nil:
		return failed("Restart vc-gateway, which makes both",
			"the MutatingWebhookConfiguration or the ValidatingWebhookConfiguration %s does not exist: "+
				"webhooks and policies of converted tenants have no effect", names.ConvertedAdmission)
	case a.gateway.available == 0:
		return failed("See the check of vc-gateway",
			"converted tenants with webhooks or policies cannot change objects: no vc-gateway is available")
	}
	for _, config := range a.clientConfigs() {
		if err := a.clientProblem(config, now); err != nil {
			return failed("Restart vc-gateway, which writes the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration "+
				names.ConvertedAdmission, "converted tenants with webhooks or policies cannot change objects: %v", err)
		}
	}
	return ok("vc-gateway answers")
}

func (a admission) clientConfigs() (all []admissionregistrationv1.WebhookClientConfig) {
	for i := range a.mutating.Webhooks {
		all = append(all, a.mutating.Webhooks[i].ClientConfig)
	}
	for i := range a.validating.Webhooks {
		all = append(all, a.validating.Webhooks[i].ClientConfig)
	}
	return all
}

// clientProblem returns why the super cluster does not reach the gateway. A
// certificate that the gateway has not made is not known.
func (a admission) clientProblem(config admissionregistrationv1.WebhookClientConfig, now time.Time) error {
	at, err := url.Parse(ptr.Deref(config.URL, ""))
	if err != nil || at.Hostname() == "" {
		return errors.New("the registration of the webhooks has no URL")
	}
	if len(a.certificate) == 0 || len(config.CABundle) == 0 {
		return nil
	}
	return signatureProblem(a.certificate, config.CABundle, at.Hostname(), now)
}
