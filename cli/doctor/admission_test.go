package doctor

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestSecretOfGateway: a Secret of before does not count when the certificate is
// one of others.
func TestSecretOfGateway(t *testing.T) {
	const host, namespace = "gw.example.com", "vc-system"
	now := time.Now()
	registered, other := issue(t, host, time.Hour, now), issue(t, host, time.Hour, now)
	url := "https://" + host
	called := admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: registered.authority.CertPEM}
	for title, tt := range map[string]struct {
		args []string
		want Verdict
		part string
	}{
		"kept by the gateway":       {[]string{"--bind-address=:10443", "--tls-secret=vc-system/vc-gateway-tls"}, Failed, "unknown authority"},
		"kept in another Secret":    {[]string{"--tls-secret=vc-system/another"}, OK, "answers"},
		"left by an earlier values": {[]string{"--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key"}, OK, "answers"},
	} {
		t.Run(title, func(t *testing.T) {
			named := metav1.ObjectMeta{Name: names.ConvertedAdmission}
			gateway := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: installation.Gateway}}
			gateway.Spec.Template.Spec.Containers = []corev1.Container{{Name: "vc-gateway", Args: tt.args}}
			gateway.Status.AvailableReplicas = 1
			super := &Super{Installation: namespace, Client: fake.NewClientBuilder().WithObjects(
				gateway,
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "vc-gateway-tls"},
					Data:       map[string][]byte{corev1.TLSCertKey: other.pair.CertPEM},
				},
				&admissionregistrationv1.MutatingWebhookConfiguration{
					ObjectMeta: named, Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: called}},
				},
				&admissionregistrationv1.ValidatingWebhookConfiguration{
					ObjectMeta: named, Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: called}},
				},
			).Build()}
			is(t, admissionWebhooks(t.Context(), super), tt.want, tt.part)
		})
	}
}
