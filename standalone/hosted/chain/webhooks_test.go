package chain_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// hookAddress is the address of the pod that serves webhooks, in every tenant.
const hookAddress = "10.1.0.1"

// hook is a server of webhooks.
type hook struct {
	*httptest.Server

	ca       []byte
	answer   func(*http.Request, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	requests atomic.Int32
	closed   atomic.Int32 // connections
}

// newHook starts a server of webhooks, which is the Service hook in the
// namespace team.
func newHook(t *testing.T, answer func(*http.Request, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *hook {
	t.Helper()
	g := NewWithT(t)
	ca, err := pki.NewAuthority("hook", time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Server("hook", []string{"hook.team.svc", "hook.example.com"}, nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	g.Expect(err).NotTo(HaveOccurred())
	h := &hook{ca: ca.CertPEM, answer: answer}
	h.Server = httptest.NewUnstartedServer(h)
	h.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	h.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			h.closed.Add(1)
		}
	}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// ServeHTTP implements http.Handler.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests.Add(1)
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	review.Response = h.answer(r, review.Request)
	review.Response.UID = review.Request.UID
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// labels returns an answer that sets the label of a tenant.
func labels(tenant string) func(*http.Request, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(*http.Request, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{
			Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch),
			Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"of":"` + tenant + `"}}]`),
		}
	}
}

// pods is a network in which some addresses have a server.
type pods struct {
	servers map[string]string

	mu       sync.Mutex
	purposes []egress.Purpose
}

// Dialer implements egress.Network.
func (p *pods) Dialer(purpose egress.Purpose) egress.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		p.mu.Lock()
		p.purposes = append(p.purposes, purpose)
		p.mu.Unlock()
		server, ok := p.servers[address]
		if !ok || purpose == egress.Itself {
			return nil, &egress.RefusedError{Address: address, Reason: egress.Outside}
		}
		return egress.Unrestricted{}.Dialer(purpose)(ctx, network, server)
	}
}

// addWithHook adds a tenant with the namespace team, in which a pod serves
// webhooks.
func addWithHook(t *testing.T, c *chain.Chain, name string, h *hook) (*chain.Tenant, kubernetes.Interface) {
	t.Helper()
	network := &pods{servers: map[string]string{
		hookAddress + ":8443": h.Listener.Addr().String(), "hook.example.com:443": h.Listener.Addr().String(),
	}}
	return addWithNetwork(t, c, name, network)
}

func addWithNetwork(t *testing.T, c *chain.Chain, name string, network egress.Network) (*chain.Tenant, kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	tenant, err := c.Add(chain.Spec{Name: name, Network: network})
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	createTeam(t, client)
	createHookService(t, client)
	return tenant, client
}

func createHookService(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	_, err := client.CoreV1().Services("team").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.DiscoveryV1().EndpointSlices("team").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hook", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{hookAddress}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8443))}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// clientConfig is the configuration of a webhook that is the Service hook.
func (h *hook) clientConfig() admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "team", Name: "hook"}, CABundle: h.ca,
	}
}

// configMaps are the rules of webhooks for ConfigMaps.
func configMaps() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
}

// createMutating creates a webhook for ConfigMaps.
func createMutating(t *testing.T, client kubernetes.Interface, webhook admissionregistrationv1.MutatingWebhook) {
	t.Helper()
	webhook.Name, webhook.Rules = "hook.example.com", configMaps()
	webhook.SideEffects = new(admissionregistrationv1.SideEffectClassNone)
	webhook.AdmissionReviewVersions = []string{"v1"}
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Webhooks: []admissionregistrationv1.MutatingWebhook{webhook},
	}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// labelOf creates a ConfigMap, and returns the label that a webhook has set.
func labelOf(t *testing.T, client kubernetes.Interface, namespace, name string) (string, error) {
	t.Helper()
	created, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return created.GetLabels()["of"], err
}

// TestWebhooks: webhooks of equal names at equal addresses, each in its tenant.
func TestWebhooks(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	ofRed, ofBlue := newHook(t, labels("red")), newHook(t, labels("blue"))
	_, red := addWithHook(t, c, "red", ofRed)
	_, blue := addWithHook(t, c, "blue", ofBlue)
	createMutating(t, red, admissionregistrationv1.MutatingWebhook{ClientConfig: ofRed.clientConfig()})
	g.Expect(labelOf(t, red, "team", "first")).To(Equal("red"), "a webhook applies once its creation has succeeded")
	g.Expect(labelOf(t, blue, "team", "first")).To(BeEmpty())
	g.Expect(ofBlue.requests.Load()).To(BeZero())

	createMutating(t, blue, admissionregistrationv1.MutatingWebhook{ClientConfig: ofBlue.clientConfig()})
	g.Expect(labelOf(t, blue, "team", "second")).To(Equal("blue"))
	g.Expect(labelOf(t, red, "team", "second")).To(Equal("red"))
	g.Expect(ofRed.requests.Load()).To(BeEquivalentTo(2))
	g.Expect(ofBlue.requests.Load()).To(BeEquivalentTo(1))
}

// TestWebhooksAreSelected: by the labels of the tenant's namespaces, and by
// conditions that ask the tenant's RBAC without the context of a request.
func TestWebhooksAreSelected(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	of := newHook(t, labels("red"))
	_, red := addWithHook(t, c, "red", of)
	_, blue := addWithHook(t, c, "blue", of)
	for _, each := range []kubernetes.Interface{red, blue} {
		createMutating(t, each, admissionregistrationv1.MutatingWebhook{
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new("https://hook.example.com/hook"), CABundle: of.ca},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hooked": "true"}},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "may", Expression: `authorizer.group("").resource("secrets").namespace("team").check("get").allowed()`},
				{Name: "named", Expression: `object.metadata.name != "exempt"`},
			},
		})
	}
	createNamespace(t, red, "other", "hooked", "true")
	createNamespace(t, blue, "other")
	g.Expect(labelOf(t, red, "other", "x")).To(Equal("red"))
	g.Expect(labelOf(t, red, "other", "exempt")).To(BeEmpty())
	g.Expect(labelOf(t, red, "team", "x")).To(BeEmpty())
	g.Expect(labelOf(t, blue, "other", "x")).To(BeEmpty())
}

// TestHangingWebhook: it delays no other tenant, and ends after its timeout.
func TestHangingWebhook(t *testing.T) {
	t.Parallel() // it waits for the timeout
	g := NewWithT(t)
	c, _ := startChain(t)
	called := make(chan struct{})
	hanging := newHook(t, func(r *http.Request, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		close(called)
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		<-r.Context().Done()
		return &admissionv1.AdmissionResponse{}
	})
	_, red := addWithHook(t, c, "red", hanging)
	of := newHook(t, labels("blue"))
	_, blue := addWithHook(t, c, "blue", of)
	createMutating(t, red, admissionregistrationv1.MutatingWebhook{ClientConfig: hanging.clientConfig(), TimeoutSeconds: new(int32(15))})
	createMutating(t, blue, admissionregistrationv1.MutatingWebhook{ClientConfig: of.clientConfig()})
	failed := make(chan error, 1)
	go func() { failed <- createConfigMap(t, red, "x") }()
	g.Eventually(called, later).Should(BeClosed())
	for _, name := range []string{"x", "y", "z"} {
		g.Expect(labelOf(t, blue, "team", name)).To(Equal("blue"))
	}
	g.Expect(failed).NotTo(Receive(), "blue waited")
	g.Eventually(failed, later).Should(Receive(MatchError(ContainSubstring("context deadline exceeded"))))
}

// directory has one address, which is a pod of a tenant.
type directory struct{ tenant string }

// Holder implements egress.Directory.
func (d directory) Holder(address netip.Addr) egress.Holder {
	if address.String() == hookAddress {
		return egress.Holder{Pods: []string{d.tenant}}
	}
	return egress.Holder{}
}

// TestWebhookOfAnotherTenantsPod: a webhook's Service can have any address, but
// the network connects to pods of the tenant only.
func TestWebhookOfAnotherTenantsPod(t *testing.T) {
	g := NewWithT(t)
	metrics, err := egress.NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	policy := &egress.Policy{
		Directory: directory{tenant: "blue"}, Machine: func() ([]netip.Addr, error) { return nil, nil }, Metrics: metrics,
	}
	c, _ := newChain(t)
	of := newHook(t, labels("red"))
	_, red := addWithNetwork(t, c, "red", policy.For("red"))
	createMutating(t, red, admissionregistrationv1.MutatingWebhook{ClientConfig: of.clientConfig()})
	g.Expect(createConfigMap(t, red, "x")).To(MatchError(ContainSubstring("connect to " + hookAddress + ":8443: not allowed")))
}

// TestWebhookOfTheAPIServer: a webhook at the apiserver itself is an aggregated API,
// and gets none of the control plane's own rights at anything else.
func TestWebhookOfTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	of := newHook(t, labels("red"))
	for i, path := range []string{
		"/", "/apis/", "/openapi/v3", "/healthz", "/apis/absent.example.com/v1/reviews", "/api/v1/namespaces", "/apis/apps/v1/namespaces/team/deployments",
		"/api/v1/namespaces/team/services/hook/proxy", "/api/v1/namespaces/team/pods/hook/proxy/reviews",
	} {
		_, red := addWithHook(t, c, fmt.Sprintf("red-%d", i), of) // the first webhook of a tenant applies at once
		createMutating(t, red, admissionregistrationv1.MutatingWebhook{
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://kubernetes.default.svc" + path), CABundle: of.ca},
		})
		g.Expect(createConfigMap(t, red, "x")).To(MatchError(ContainSubstring("has to be an aggregated API")), path)
	}
	g.Expect(of.requests.Load()).To(BeZero())
}

// TestRemovedTenantLeavesNothing: its connections are closed, and what worked
// for it has ended.
func TestRemovedTenantLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	of := newHook(t, labels("red"))
	use := func(name string) *chain.Tenant {
		tenant, client := addWithHook(t, c, name, of)
		createMutating(t, client, admissionregistrationv1.MutatingWebhook{ClientConfig: of.clientConfig()})
		forbid(t, client, `object.metadata.name != "y"`, nil, nil)
		_, err := client.CoreV1().ResourceQuotas("team").Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(labelOf(t, client, "team", "x")).To(Equal("red"))
		return tenant
	}
	use("blue") // starts what all tenants share
	goroutines := runtime.NumGoroutine()
	tenant := use("red")
	g.Expect(runtime.NumGoroutine()).To(BeNumerically(">", goroutines))
	g.Expect(of.closed.Load()).To(BeZero(), "connections are kept for the next request")
	c.Remove(tenant)
	g.Eventually(of.closed.Load, later).Should(BeEquivalentTo(1))
	g.Eventually(runtime.NumGoroutine, later).Should(BeNumerically("<=", goroutines))
}
