package kit

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Webhook is a server in a pod of a converted tenant, at a Service of the same
// name.
type Webhook struct {
	Namespace, Name string
	// CA verifies its certificate, in PEM.
	CA []byte
	// Address is that of the pod, with the port.
	Address string

	mu    sync.Mutex
	calls []admissionv1.AdmissionRequest
}

// Decide is what a webhook responds.
type Decide func(path string, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// ServeHTTP implements http.Handler.
func (d Decide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = d(r.URL.Path, review.Request)
	review.Response.UID, review.Request = review.Request.UID, nil
	_ = json.NewEncoder(w).Encode(review) //nolint:errchkjson // the apiserver sees what is missing
}

// StartWebhook starts a webhook in a namespace of a converted tenant, until the
// container of specs ends.
func StartWebhook(ctx context.Context, super *local.SuperCluster, t *local.Tenant, namespace, name string, decide Decide) *Webhook {
	GinkgoHelper()
	w := &Webhook{Namespace: namespace, Name: name}
	w.start(ctx, super, t, w.keep(decide))
	return w
}

// StartAnswering starts a webhook that answers as a handler does, which keeps no calls.
func StartAnswering(ctx context.Context, super *local.SuperCluster, t *local.Tenant, namespace, name string, answer http.Handler) *Webhook {
	GinkgoHelper()
	w := &Webhook{Namespace: namespace, Name: name}
	w.start(ctx, super, t, answer)
	return w
}

// start serves a handler in a pod of a tenant, at a Service.
func (w *Webhook) start(ctx context.Context, super *local.SuperCluster, t *local.Tenant, handler http.Handler) {
	GinkgoHelper()
	namespace, name := w.Namespace, w.Name
	address := w.listen(ctx, handler)
	labels := map[string]string{"webhook": name}
	pod := Pod(namespace, name, func(p *corev1.Pod) { p.Labels = labels })
	Eventually(func() error { return t.Client.Create(ctx, pod) }).WithContext(ctx).Should(Succeed(), "a controller makes its service account")
	Create(ctx, t.Client, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	})
	w.serveAt(ctx, super, t, pod, address)
}

// serveAt makes the pod have the address, and the Service lead to it, as the node
// and the controllers of the super cluster do.
func (w *Webhook) serveAt(ctx context.Context, super *local.SuperCluster, t *local.Tenant, pod *corev1.Pod, address *net.TCPAddr) {
	GinkgoHelper()
	SetPodAddress(ctx, super, SuperOf(t, pod), address.IP.String())
	slice := EndpointSlice(t.Super(w.Namespace), w.Name, w.Name, address.IP.String())
	slice.Ports[0].Port, slice.Ports[0].Name = new(int32(address.Port)), nil
	slice.Endpoints[0].Conditions.Ready = new(true)
	Create(ctx, super.Client, slice)
}

// SetPodAddress makes a pod of the super cluster have an address as soon as it
// runs, as its node does.
func SetPodAddress(ctx context.Context, super *local.SuperCluster, pod *corev1.Pod, address string) {
	GinkgoHelper()
	Eventually(Read(ctx, super.Client, pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
	SetPodStatus(ctx, super.Client, pod, func(s *corev1.PodStatus) {
		s.PodIP, s.PodIPs = address, []corev1.PodIP{{IP: address}}
	})
}

// listen serves the webhook at an address of the network of pods.
func (w *Webhook) listen(ctx context.Context, handler http.Handler) *net.TCPAddr {
	GinkgoHelper()
	tcp, err := net.Listen("tcp", net.JoinHostPort(PodAddress(ctx), "0"))
	Expect(err).NotTo(HaveOccurred())
	address := tcp.Addr().(*net.TCPAddr)
	ca, err := pki.NewAuthority("webhook", time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Server("webhook", []string{w.Name + "." + w.Namespace + ".svc"}, []net.IP{address.IP}, time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	Expect(err).NotTo(HaveOccurred())
	w.CA, w.Address = ca.CertPEM, address.String()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: Soon, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		_ = server.Serve(tls.NewListener(tcp, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	}()
	DeferCleanup(server.Close)
	return address
}

// keep adds requests to the calls before they are decided about.
func (w *Webhook) keep(decide Decide) Decide {
	return func(path string, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		w.mu.Lock()
		w.calls = append(w.calls, *r)
		w.mu.Unlock()
		return decide(path, r)
	}
}

// Calls returns the requests since the last time, and forgets them.
func (w *Webhook) Calls() []admissionv1.AdmissionRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// At leads to a path of the webhook.
func (w *Webhook) At(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{CABundle: w.CA, Service: &admissionregistrationv1.ServiceReference{
		Namespace: w.Namespace, Name: w.Name, Path: &path,
	}}
}

// ForRequests returns rules for operations on resources.
func ForRequests(group, resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}}
}

// Validating returns a configuration with one webhook.
func Validating(
	name string, at admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations,
	change ...func(*admissionregistrationv1.ValidatingWebhook),
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	webhook := admissionregistrationv1.ValidatingWebhook{
		Name: name + ".example.com", ClientConfig: at, Rules: rules, AdmissionReviewVersions: []string{"v1"},
		SideEffects: new(admissionregistrationv1.SideEffectClassNone),
	}
	for _, f := range change {
		f(&webhook)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{webhook},
	}
}

// Mutating returns a configuration with one webhook.
func Mutating(
	name string, at admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations,
	change ...func(*admissionregistrationv1.MutatingWebhook),
) *admissionregistrationv1.MutatingWebhookConfiguration {
	webhook := admissionregistrationv1.MutatingWebhook{
		Name: name + ".example.com", ClientConfig: at, Rules: rules, AdmissionReviewVersions: []string{"v1"},
		SideEffects: new(admissionregistrationv1.SideEffectClassNone),
	}
	for _, f := range change {
		f(&webhook)
	}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{webhook},
	}
}

// Temporarily creates an object until the spec ends.
func Temporarily(ctx context.Context, c client.Client, object client.Object) {
	GinkgoHelper()
	Create(ctx, c, object)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(c.Delete(ctx, object))).To(Succeed()) })
}
