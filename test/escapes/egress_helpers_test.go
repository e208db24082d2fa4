package escapes

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	egressNamespace = "egress"
	// outsideNetwork is what the admin of the suite's super cluster allows, so
	// that names are resolved. Nothing is there.
	outsideNetwork = "198.51.100.0/24"
	// notAllowed is the message for a tenant whose connection is rejected.
	notAllowed = "not allowed: a hosted control plane connects to"
)

// listener is a server that counts the connections to it.
type listener struct {
	netip.AddrPort

	ca          []byte
	connections atomic.Int32
}

// listen counts connections to an address until the container of specs ends,
// and answers requests over HTTPS; with nil, that nothing is found.
func listen(address string, answer http.Handler) *listener {
	GinkgoHelper()
	l, tcp := newListener(address)
	ca, certificate := identity(l.Addr())
	l.ca = ca.CertPEM
	l.serve(tls.NewListener(tcp, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}), answer)
	return l
}

// listenPlain does the same over HTTP.
func listenPlain(address string, answer http.Handler) *listener {
	GinkgoHelper()
	l, tcp := newListener(address)
	l.serve(tcp, answer)
	return l
}

func newListener(address string) (*listener, net.Listener) {
	GinkgoHelper()
	tcp, err := net.Listen("tcp", address)
	Expect(err).NotTo(HaveOccurred())
	return &listener{AddrPort: tcp.Addr().(*net.TCPAddr).AddrPort()}, tcp
}

func (l *listener) serve(connections net.Listener, answer http.Handler) {
	GinkgoHelper()
	if answer == nil {
		answer = http.NotFoundHandler()
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: kit.Soon, ErrorLog: log.New(io.Discard, "", 0)}
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			l.connections.Add(1)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(connections) }()
	DeferCleanup(func() {
		Expect(server.Close()).To(Succeed())
		Expect(<-ended).To(MatchError(http.ErrServerClosed))
	})
}

// identity is the certificate of a backend, and the authority that has signed
// it.
func identity(address netip.Addr) (pki.Authority, tls.Certificate) {
	GinkgoHelper()
	ca, err := pki.NewAuthority("backend", time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Server("backend", []string{"backend." + egressNamespace + ".svc", "localhost"}, []net.IP{address.AsSlice()}, time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	Expect(err).NotTo(HaveOccurred())
	return ca, certificate
}

// connected is how many connections there were.
func (l *listener) connected() int { return int(l.connections.Load()) }

// port is the number of the port.
func (l *listener) port() int32 { return int32(l.Port()) }

// shouldBeUntouched asserts that there was no connection.
func (l *listener) shouldBeUntouched() {
	GinkgoHelper()
	Consistently(l.connected).WithTimeout(kit.Quiet / 5).Should(BeZero())
}

// backend is a pod of a tenant at an address of the pod network, as the super
// cluster's node says.
func backend(ctx context.Context, t *local.Tenant, name, address string, change ...func(*corev1.Pod)) *corev1.Pod {
	GinkgoHelper()
	p := kit.Pod(egressNamespace, name, change...)
	kit.Create(ctx, t.Client, p)
	copied := kit.SuperOf(t, p)
	kit.SetPodAddress(ctx, super, copied, address)
	Eventually(kit.Read(ctx, t.Client, p)).Should(HaveField("Status.PodIP", address))
	return copied
}

// leadTo makes a Service without a selector, and says in its EndpointSlice that
// it is served at an address.
func leadTo(ctx context.Context, t *local.Tenant, name string, to netip.AddrPort) {
	GinkgoHelper()
	kit.Create(ctx, t.Client, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: egressNamespace, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: egressNamespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{to.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(to.Port()))}},
	})
}

// served leads to a path of a Service, whose certificate is signed by an
// authority.
func served(name, path string, ca []byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{CABundle: ca, Service: &admissionregistrationv1.ServiceReference{
		Namespace: egressNamespace, Name: name, Path: &path,
	}}
}

// at leads to a URL.
func at(url string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: &url}
}

// rejection returns why a webhook does not let a tenant create a ConfigMap.
func rejection(ctx context.Context, t *local.Tenant, webhook admissionregistrationv1.WebhookClientConfig) error {
	GinkgoHelper()
	label := fmt.Sprintf("w%d", time.Now().UnixNano())
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: label},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "webhook.example.com", ClientConfig: webhook,
			AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds: new(int32(30)),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"webhook": label}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
		}},
	}
	kit.Create(ctx, t.Client, configuration)
	DeferCleanup(func(ctx SpecContext) { Expect(t.Client.Delete(ctx, configuration)).To(Succeed()) })
	return refusal(ctx, t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: egressNamespace, GenerateName: "asks-", Labels: map[string]string{"webhook": label},
	}})
}

// refusal returns why a tenant cannot create an object, once its apiserver has
// learned of the webhook that refuses it.
func refusal(ctx context.Context, t *local.Tenant, object client.Object) error {
	GinkgoHelper()
	var err error
	Eventually(func(ctx context.Context) error {
		err = t.Client.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		return err
	}).WithContext(ctx).ShouldNot(Succeed())
	return err
}

// shouldNotBeAllowed asserts that a tenant's error says that a connection is
// not made, and has no address of the machine's except those that the tenant
// itself has named.
func shouldNotBeAllowed(err error) {
	GinkgoHelper()
	Expect(err).To(MatchError(ContainSubstring(notAllowed)))
}

// ask sends a GET to a path of a tenant's apiserver, which may ask for an
// upgrade of the connection. An answer that is no success is an error with its
// text.
func ask(ctx context.Context, t *local.Tenant, path, upgrade string) error {
	GinkgoHelper()
	config := rest.CopyConfig(t.Config)
	config.NextProtos = []string{"http/1.1"}
	c, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	Expect(err).NotTo(HaveOccurred())
	if upgrade != "" {
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", upgrade)
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return err
}

// ownNode makes a node in a tenant whose kubelet is at a listener, as the
// tenant says.
func ownNode(ctx context.Context, t *local.Tenant, name string, to *listener, change ...func(*corev1.Node)) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	kit.Create(ctx, t.Client, node)
	was := node.DeepCopy()
	setKubelet(node, to)
	for _, f := range change {
		f(node)
	}
	Expect(t.Client.Status().Patch(ctx, node, client.MergeFrom(was))).To(Succeed())
}

// setKubelet sets the address of a node's kubelet to a listener.
func setKubelet(node *corev1.Node, to *listener) {
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: to.Addr().String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = to.port()
}

// externalName makes a Service that is an external name.
func externalName(ctx context.Context, t *local.Tenant, name, host string) {
	GinkgoHelper()
	kit.Create(ctx, t.Client, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: egressNamespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
	})
}

// aggregate registers a Service for an aggregated API group.
func aggregate(ctx context.Context, t *local.Tenant, group, service string, port int32) *unstructured.Unstructured {
	GinkgoHelper()
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": egressNamespace, "name": service, "port": int64(port)},
		},
	}}
	kit.Create(ctx, t.Client, api)
	DeferCleanup(func(ctx SpecContext) { Expect(t.Client.Delete(ctx, api)).To(Succeed()) })
	return api
}

// shouldBeUnavailable asserts that an aggregated API is not served, with a
// reason in its condition.
func shouldBeUnavailable(ctx context.Context, t *local.Tenant, api *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (string, error) {
		if err := kit.Get(ctx, t.Client, api); err != nil {
			return "", err
		}
		conditions, _, err := unstructured.NestedSlice(api.Object, "status", "conditions")
		return fmt.Sprint(conditions), err
	}).WithContext(ctx).Should(And(ContainSubstring(notAllowed), ContainSubstring("False")))
}

// shouldBecomeAvailable asserts that an aggregated API is served.
func shouldBecomeAvailable(ctx context.Context, t *local.Tenant, api *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(kit.Read(ctx, t.Client, api)).Should(HaveField("Object", HaveKeyWithValue("status", HaveKeyWithValue("conditions",
		ContainElement(And(HaveKeyWithValue("type", "Available"), HaveKeyWithValue("status", "True")))))))
}

// callAvailable writes into the status of a tenant's aggregated API that it is
// available.
func callAvailable(ctx context.Context, t *local.Tenant, api *unstructured.Unstructured) error {
	if err := kit.Get(ctx, t.Client, api); err != nil {
		return err
	}
	api.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Available", "status": "True", "reason": "Claimed", "message": "by the tenant", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
	return t.Client.Status().Update(ctx, api)
}

// conversion returns why an object of a custom resource is not converted by a
// webhook.
func conversion(ctx context.Context, t *local.Tenant, group string, webhook apiextensionsv1.WebhookClientConfig) error {
	GinkgoHelper()
	version := func(name string, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}
	}
	kit.Create(ctx, t.Client, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "turns." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "turns", Singular: "turn", Kind: "Turn", ListKind: "TurnList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false), version("v2", true)},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &webhook, ConversionReviewVersions: []string{"v1"},
				},
			},
		},
	})
	var answer error
	Eventually(func(ctx context.Context) error { // the resource is served a moment later
		turn := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Turn", "metadata": map[string]any{"name": "turn"},
		}}
		answer = t.Client.Create(ctx, turn)
		return answer
	}).WithContext(ctx).Should(MatchError(ContainSubstring("conversion webhook")))
	return answer
}

// answerWith answers with a body.
func answerWith(mediaType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = w.Write(body) // the client may not want all of it
	}
}

// endlessAnswer answers with JSON as long as the client reads, and counts the
// megabytes.
func endlessAnswer(sent *atomic.Int32) http.HandlerFunc {
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write([]byte("{"))
		for ; err == nil; sent.Add(1) {
			_, err = w.Write(spaces)
		}
	}
}

// reviewInProtobuf is the answer of a webhook whose annotations each hold the rest
// of it.
func reviewInProtobuf() []byte {
	const responseField, annotationsField, entries, padding = 2, 6, 10, 1000
	return nestingtest.Object("admission.k8s.io/v1", "AdmissionReview",
		nestingtest.In(nestingtest.Overlapping(annotationsField, entries, padding), responseField))
}

// patchWith answers as a webhook that mutates.
func patchWith(patch string) http.HandlerFunc {
	return kit.Decide(func(string, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte(patch)}
	}).ServeHTTP
}

// nestingPatches are JSON patches that make an object 9,000 levels deep at a path: by
// a value, and by moves of what is flat.
func nestingPatches(path string) []string {
	const levels, by = 9_000, 5
	add := func(value string) string { return `{"op":"add","path":"` + path + `","value":` + value + "}" }
	return []string{
		"[" + add(strings.Repeat(`{"not":`, levels)+"{}"+strings.Repeat("}", levels)) + "]",
		"[" + add("{}") + "," + movesInto(path, "not", by, levels/by) + "]",
	}
}

// movesInto are operations of a JSON patch that move what is at a path a number of levels
// deeper, and do so again. The levels have a field each.
func movesInto(path, field string, by, times int) string {
	levels := strings.Repeat(`{"type":"object","`+field+`":`, by) + `{"type":"object"}` + strings.Repeat("}", by)
	deeper := fmt.Sprintf(`{"op":"move","from":"%[1]s","path":"/x"},{"op":"add","path":"%[1]s","value":%[2]s},`+
		`{"op":"move","from":"/x","path":"%[1]s%[3]s"},`, path, levels, strings.Repeat("/"+field, by))
	return strings.TrimSuffix(strings.Repeat(deeper, times), ",")
}

// copies is a JSON patch that copies the metadata of an object into itself, which
// doubles it each time. With as many as an attacker would use, the process would not
// be there to answer.
func copies() string {
	const times = 20
	operations := make([]string, times)
	for i := range operations {
		operations[i] = fmt.Sprintf(`{"op":"copy","from":"/metadata","path":"/metadata/x%d"}`, i)
	}
	return "[" + strings.Join(operations, ",") + "]"
}

// inserts is a JSON patch that inserts at the beginning of a list, which moves all that
// is in it each time. The time is quadratic: an attacker would send several times as
// many.
func inserts() string {
	const times = 10_001
	return `[{"op":"add","path":"/inserted","value":[]}` + strings.Repeat(`,{"op":"add","path":"/inserted/0","value":0}`, times-1) + "]"
}

// mutation returns why a mutating webhook does not let a tenant create a definition.
func mutation(ctx context.Context, t *local.Tenant, webhook admissionregistrationv1.WebhookClientConfig) error {
	GinkgoHelper()
	label := fmt.Sprintf("w%d", time.Now().UnixNano())
	create := kit.ForRequests("apiextensions.k8s.io", "customresourcedefinitions", admissionregistrationv1.Create)
	kit.Temporarily(ctx, t.Client, kit.Mutating(label, webhook, create, func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"webhook": label}}
	}))
	crd := crdOf("mutated.example.com", map[string]string{"webhook": label})
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Not = &apiextensionsv1.JSONSchemaProps{}
	return refusal(ctx, t, crd)
}

// mutateBy makes a policy of a tenant change the objects of some requests.
func mutateBy(
	ctx context.Context, t *local.Tenant, name string, requests admissionregistrationv1.RuleWithOperations, mutation admissionregistrationv1.Mutation,
) {
	GinkgoHelper()
	kit.Temporarily(ctx, t.Client, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: requests}},
			},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations:          []admissionregistrationv1.Mutation{mutation},
		},
	})
	kit.Temporarily(ctx, t.Client, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	})
}
