package e2e

import (
	"context"
	"fmt"
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// webhookPort is where the webhook of agnhost serves.
const webhookPort = 8444

var _ = Describe("What a tenant's pods serve to the tenant's apiserver", Ordered, func() {
	var ns string
	var ca []byte

	BeforeAll(func(ctx SpecContext) {
		ns = newNamespace(ctx, red)
		authority, err := pki.NewAuthority("webhook", time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		ca = authority.CertPEM
		pair, err := authority.Server("webhook", []string{"webhook." + ns + ".svc"}, nil, time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "webhook"},
			Data:       map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM},
		}
		p := pod(ns, "webhook", agnhost, "webhook", "--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key",
			fmt.Sprint("--port=", webhookPort))
		p.Spec.Volumes = []corev1.Volume{{
			Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret.Name}},
		}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}}
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/readyz", Port: intstr.FromInt32(webhookPort), Scheme: corev1.URISchemeHTTPS,
			}},
			PeriodSeconds: 1,
		}
		front := service(ns, "webhook")
		front.Spec.Ports[0].Port, front.Spec.Ports[0].TargetPort = 443, intstr.FromInt32(webhookPort)
		create(ctx, red, secret, p, front, server(ns, "web"), service(ns, "web"))
		shouldBeReady(ctx, red, p)
		shouldBeReady(ctx, red, server(ns, "web"))
		Eventually(readyEndpoints(red.Client, front)).WithContext(ctx).Should(Equal(1))
	})

	It("is admission, by a webhook", func(ctx SpecContext) {
		path := "/always-deny"
		Expect(rejection(ctx, ns, "own", admissionregistrationv1.WebhookClientConfig{
			CABundle: ca, Service: &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "webhook", Path: &path},
		})).To(MatchError(ContainSubstring("denied the request: this webhook denies all requests")))
	})

	It("is a page, through the proxies to a pod and to a Service", func(ctx SpecContext) {
		for _, of := range []string{fmt.Sprintf("pods/web:%d", port), "services/web:80"} {
			Eventually(func(ctx context.Context) (string, error) {
				client, err := kubernetes.NewForConfig(red.Config)
				Expect(err).NotTo(HaveOccurred())
				body, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces", ns, of, "proxy/hostname").DoRaw(ctx)
				return string(body), err
			}).WithContext(ctx).Should(Equal("web"), of)
		}
	})

	It("is refused of another tenant's pods, of the node and of this machine", func(ctx SpecContext) {
		others := newNamespace(ctx, blue)
		its := server(others, "web")
		create(ctx, blue, its)
		for i, address := range []string{shouldBeReady(ctx, blue, its).Status.PodIP, nodeAddress(ctx), "127.0.0.1"} {
			url := "https://" + net.JoinHostPort(address, fmt.Sprint(port))
			Expect(rejection(ctx, ns, fmt.Sprint("other-", i), admissionregistrationv1.WebhookClientConfig{URL: &url})).
				To(MatchError(ContainSubstring("not allowed: a hosted control plane connects to")), address)
		}
	})
})

// rejection returns why a webhook does not let red create a ConfigMap.
func rejection(ctx context.Context, ns, name string, webhook admissionregistrationv1.WebhookClientConfig) error {
	GinkgoHelper()
	asked := map[string]string{"asks": ns + "-" + name}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "webhook.example.com", ClientConfig: webhook,
			AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: asked},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
		}},
	}
	create(ctx, red, configuration)
	DeferCleanup(func(ctx SpecContext) { Expect(red.Client.Delete(ctx, configuration)).To(Succeed()) })
	var answer error
	Eventually(func(ctx context.Context) error { // an apiserver learns of a webhook a moment later
		answer = red.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, GenerateName: "asks-", Labels: asked,
		}})
		return answer
	}).WithContext(ctx).ShouldNot(Succeed())
	return answer
}
