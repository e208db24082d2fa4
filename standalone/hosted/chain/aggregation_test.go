package chain_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// metricsVersion is the version that aggregated APIs serve.
const metricsVersion = "metrics.example.com/v1"

// extension is the server of an aggregated API in a pod of a tenant.
type extension struct {
	*httptest.Server

	tenant  string
	ca      []byte
	proxies pki.Authority // signs the certificates of the tenant's aggregator
	network *pods
	// endless receives the number of bytes of each document, which have no end
	// until the reader goes away; nil for documents that end.
	endless chan int
}

// newExtension starts the server that is the Service hook in the namespace team.
func newExtension(t *testing.T, tenant string) *extension {
	t.Helper()
	g := NewWithT(t)
	ca, err := pki.NewAuthority("extension", time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	proxies, err := pki.NewAuthority("front-proxy-ca:"+tenant, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := ca.Server("extension", []string{"hook.team.svc"}, nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	g.Expect(err).NotTo(HaveOccurred())
	clients := x509.NewCertPool()
	g.Expect(clients.AppendCertsFromPEM(proxies.CertPEM)).To(BeTrue())
	e := &extension{tenant: tenant, ca: ca.CertPEM, proxies: proxies}
	e.Server = httptest.NewUnstartedServer(e)
	e.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}
	e.StartTLS()
	t.Cleanup(e.Close)
	e.network = &pods{servers: map[string]string{hookAddress + ":8443": e.Listener.Addr().String()}}
	return e
}

// ServeHTTP implements http.Handler.
func (e *extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const list = "/apis/" + metricsVersion
	if e.endless != nil && r.URL.Path != list+"/who" {
		e.endless <- writeEndlessly(w)
		return
	}
	var answer any
	switch r.URL.Path {
	case list:
		answer = metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: metricsVersion,
			APIResources: []metav1.APIResource{{Name: "of" + e.tenant, SingularName: "x", Kind: "Metric", Verbs: metav1.Verbs{"list"}}},
		}
	case list + "/who":
		answer = map[string]string{
			"server": e.tenant, "user": r.Header.Get("X-Remote-User"), "proxy": r.TLS.PeerCertificates[0].Subject.CommonName,
			"token": r.Header.Get("Authorization"),
		}
	case list + "/reviews":
		answer = e.refuse(r)
	case "/openapi/v2":
		answer = map[string]any{"swagger": "2.0", "info": map[string]string{"title": "metrics", "version": "v1"}, "paths": map[string]any{
			list + "/who": map[string]any{"get": map[string]any{
				"description": "Who of " + e.tenant, "responses": map[string]any{"200": map[string]string{"description": "OK"}},
			}},
		}}
	case "/openapi/v3":
		answer = handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{
			"apis/" + metricsVersion: {ServerRelativeURL: "/openapi/v3/apis/" + metricsVersion + "?hash=X"},
			"apis/apps/v1":           {ServerRelativeURL: "/openapi/v3/apis/apps/v1?hash=FORGED"},
		}}
	case "/openapi/v3/apis/" + metricsVersion:
		answer = map[string]any{"openapi": "3.0.0", "info": map[string]string{"title": "Metrics of " + e.tenant}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// refuse is the answer to a review of an admission or a conversion.
func (e *extension) refuse(r *http.Request) map[string]any {
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil
	}
	asked, _ := review["request"].(map[string]any)
	reason := map[string]any{"status": metav1.StatusFailure, "message": "refused by " + e.tenant + " for " + r.Header.Get("X-Remote-User")}
	review["response"] = map[string]any{"uid": asked["uid"], "allowed": false, "status": reason, "result": reason}
	return review
}

// writeEndlessly writes until that fails, and returns how many bytes it wrote.
func writeEndlessly(w http.ResponseWriter) (written int) {
	w.Header().Set("Content-Type", "application/json")
	for spaces := bytes.Repeat([]byte(" "), 1<<16); ; {
		n, err := w.Write(spaces)
		if written += n; err != nil {
			return written
		}
	}
}

// spec describes the tenant in which the server runs.
func (e *extension) spec(t *testing.T) chain.Spec {
	t.Helper()
	pair, err := e.proxies.Client("front-proxy:"+e.tenant, nil, time.Hour, time.Now())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return chain.Spec{
		Name: e.tenant, Network: e.network,
		FrontProxyCA: e.proxies.CertPEM, FrontProxyClient: func() (cert, key []byte) { return pair.CertPEM, pair.KeyPEM },
	}
}

// addExtension adds a tenant with an aggregated API.
func addExtension(t *testing.T, c *chain.Chain, e *extension) *chain.Tenant {
	t.Helper()
	g := NewWithT(t)
	tenant, err := c.Add(e.spec(t))
	g.Expect(err).NotTo(HaveOccurred())
	createExtension(t, tenant, e)
	return tenant
}

func apiServicesOf(t *testing.T, tenant *chain.Tenant) *clientset.Clientset {
	t.Helper()
	client, err := clientset.NewForConfig(tenant.Config())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return client
}

// createExtension creates the Service and its APIService, and waits until that
// is available.
func createExtension(t *testing.T, tenant *chain.Tenant, e *extension) {
	t.Helper()
	g := NewWithT(t)
	core, err := kubernetes.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	createTeam(t, core)
	createHookService(t, core)
	all := apiServicesOf(t, tenant).ApiregistrationV1().APIServices()
	_, err = all.Create(t.Context(), &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.metrics.example.com"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "metrics.example.com", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 100, CABundle: e.ca,
			Service: &apiregistrationv1.ServiceReference{Namespace: "team", Name: "hook"},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	awaitAvailable(t, tenant)
}

func awaitAvailable(t *testing.T, tenant *chain.Tenant) {
	t.Helper()
	NewWithT(t).Eventually(func() (string, error) {
		found, err := who(t, tenant)
		return found["server"], err
	}).WithTimeout(later).ShouldNot(BeEmpty())
}

// who asks the aggregated API of a tenant who asks it.
func who(t *testing.T, tenant *chain.Tenant) (map[string]string, error) {
	t.Helper()
	content, err := definitionsOf(t, tenant).Discovery().RESTClient().Get().AbsPath("/apis/" + metricsVersion + "/who").DoRaw(t.Context())
	if err != nil {
		return nil, err
	}
	var found map[string]string
	return found, json.Unmarshal(content, &found)
}

// TestAggregatedAPIs: aggregated APIs of equal names at equal addresses, each in
// its tenant, with the certificate of the tenant.
func TestAggregatedAPIs(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	ofRed, ofBlue := newExtension(t, "red"), newExtension(t, "blue")
	red, blue := addExtension(t, c, ofRed), addExtension(t, c, ofBlue)
	plain, _ := add(t, c, "plain")
	for name, tenant := range map[string]*chain.Tenant{"red": red, "blue": blue} {
		g.Expect(who(t, tenant)).To(Equal(map[string]string{
			"server": name, "user": "system:apiserver", "proxy": "front-proxy:" + name, "token": "",
		}))
		for _, legacy := range []bool{false, true} {
			g.Eventually(func() map[string]*metav1.APIResourceList { return resourcesOf(t, tenant, legacy) }).WithTimeout(later).Should(
				And(HaveKeyWithValue(metricsVersion, HaveField("APIResources", ConsistOf(HaveField("Name", "of"+name)))), HaveKey("apps/v1")))
		}
	}
	g.Expect(resourcesOf(t, plain, false)).NotTo(HaveKey(metricsVersion))
	_, err := who(t, plain)
	g.Expect(err).To(HaveOccurred())
	g.Expect(chain.Aggregates(plain)).To(BeFalse())
	g.Expect(ofRed.network.purposes).To(HaveEach(egress.APIServices))

	all := apiServicesOf(t, red).ApiregistrationV1().APIServices()
	found, err := all.Get(t.Context(), "v1.metrics.example.com", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Status.Conditions).To(ContainElement(And(
		HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionTrue))))
	g.Expect(all.Delete(t.Context(), "v1.metrics.example.com", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() map[string]*metav1.APIResourceList { return resourcesOf(t, red, false) }).WithTimeout(later).ShouldNot(HaveKey(metricsVersion))
	_, err = who(t, red)
	g.Expect(err).To(HaveOccurred())
	g.Expect(who(t, blue)).To(HaveKeyWithValue("server", "blue"))
}

// TestAggregatedAPIThatIsAWebhook: of admission and of conversions, at the Service of the
// apiserver. Its calls differ from other requests of the control plane.
func TestAggregatedAPIThatIsAWebhook(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red := newExtension(t, "red")
	var calls, others atomic.Int32
	spec := red.spec(t)
	spec.Wrap = func(apis http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if chain.CallsWebhook(r.Context()) {
				calls.Add(1)
			} else {
				others.Add(1)
			}
			apis.ServeHTTP(w, r)
		})
	}
	tenant, err := c.Add(spec)
	g.Expect(err).NotTo(HaveOccurred())
	createExtension(t, tenant, red)
	g.Expect(calls.Load()).To(BeZero())
	g.Expect(others.Load()).NotTo(BeZero())

	path := "/apis/" + metricsVersion + "/reviews"
	createMutating(t, tenant.Client(), admissionregistrationv1.MutatingWebhook{ClientConfig: admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "kubernetes", Path: &path},
	}})
	refused := MatchError(ContainSubstring("refused by red for system:apiserver"))
	g.Expect(createConfigMap(t, tenant.Client(), "x")).To(refused)
	g.Expect(calls.Load()).To(BeEquivalentTo(1))

	define(t, tenant, convertedDefinition(&apiextensionsv1.WebhookClientConfig{URL: new("https://kubernetes.default.svc" + path)}))
	createGadget(t, tenant)
	_, err = convertedGadget(t, tenant)
	g.Expect(err).To(refused)
	g.Expect(calls.Load()).To(BeNumerically(">", 1))
}

// TestAggregatorExpires: it ends without requests, and serves the next one.
func TestAggregatorExpires(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red := addExtension(t, c, newExtension(t, "red"))
	g.Expect(chain.Aggregates(red)).To(BeTrue())
	chain.ExpireAggregator(red)
	g.Expect(chain.Aggregates(red)).To(BeFalse())
	g.Expect(who(t, red)).To(HaveKeyWithValue("server", "red"))
	g.Expect(chain.Aggregates(red)).To(BeTrue())

	all := apiServicesOf(t, red).ApiregistrationV1().APIServices()
	g.Expect(all.Delete(t.Context(), "v1.metrics.example.com", metav1.DeleteOptions{})).To(Succeed())
	chain.ExpireAggregator(red)
	g.Expect(resourcesOf(t, red, false)).NotTo(HaveKey(metricsVersion))
	g.Expect(chain.Aggregates(red)).To(BeFalse(), "all APIs are local")
}

// TestAggregatedOpenAPI: the documents of a tenant contain those of its
// aggregated APIs, which cannot describe built-in ones.
func TestAggregatedOpenAPI(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, blue := addExtension(t, c, newExtension(t, "red")), addExtension(t, c, newExtension(t, "blue"))
	plain, _ := add(t, c, "plain")
	g.Eventually(func() string { return documentOf(t, red) }).WithTimeout(later).Should(
		And(ContainSubstring("Who of red"), Not(ContainSubstring("Who of blue")), ContainSubstring(`"io.k8s.api.apps.v1.Deployment"`)))
	g.Expect(documentOf(t, blue)).To(ContainSubstring("Who of blue"))
	g.Expect(documentOf(t, plain)).NotTo(ContainSubstring("Who of"))
	response := fetch(t, red, "/openapi/v3/apis/"+metricsVersion, http.Header{"Accept": {"application/json"}})
	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring("Metrics of red"))
	var of, others handler3.OpenAPIV3Discovery
	g.Expect(json.NewDecoder(fetch(t, red, "/openapi/v3", nil).Body).Decode(&of)).To(Succeed())
	g.Expect(json.NewDecoder(fetch(t, plain, "/openapi/v3", nil).Body).Decode(&others)).To(Succeed())
	g.Expect(of.Paths).To(HaveKey("apis/" + metricsVersion))
	delete(of.Paths, "apis/"+metricsVersion)
	g.Expect(of.Paths).To(Equal(others.Paths))
}

// TestUnavailableAggregatedAPI: an API that does not respond is known, so that
// clients do not take its resources for missing, and disturbs no others.
func TestUnavailableAggregatedAPI(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	e := newExtension(t, "red")
	red := addExtension(t, c, e)
	define(t, red, definitionOf("size", "integer"))
	e.Close()
	g.Eventually(func() int { return fetch(t, red, "/apis/"+metricsVersion+"/who", nil).StatusCode }).WithTimeout(later).
		Should(Equal(http.StatusServiceUnavailable))
	var list metav1.APIGroupList
	g.Expect(json.NewDecoder(fetch(t, red, "/apis", http.Header{"Accept": {"application/json"}}).Body).Decode(&list)).To(Succeed())
	g.Expect(list.Groups).To(ContainElements(HaveField("Name", "metrics.example.com"), HaveField("Name", "example.com"), HaveField("Name", "apps")))
	_, err := widgetsOf(t, red).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(documentOf(t, red)).To(ContainSubstring("Widget of size"))
}

// TestAggregatedAPIsAfterRestart: a new chain proxies from the first request on.
func TestAggregatedAPIsAfterRestart(t *testing.T) {
	g := NewWithT(t)
	e := newExtension(t, "red")
	c, _ := newChain(t)
	c.Remove(addExtension(t, c, e))

	c = secondChain(t.Context(), t)
	red, err := c.Add(e.spec(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(who(t, red)).To(HaveKeyWithValue("server", "red"))
	g.Expect(resourcesOf(t, red, false)).To(HaveKey(metricsVersion))
}

// TestUnreadableAPIService: the tenant's built-in APIs are served, and those of
// others.
func TestUnreadableAPIService(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	_, err := all.Put(t.Context(), keyspace.Prefix("broken")+"/apiregistration.k8s.io/apiservices/v1.x", "{")
	g.Expect(err).NotTo(HaveOccurred())
	broken, client := add(t, c, "broken")
	plain, _ := add(t, c, "plain")
	g.Expect(fetch(t, broken, "/apis", nil).StatusCode).To(Equal(http.StatusServiceUnavailable))
	_, err = client.CoreV1().ConfigMaps("team").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.AppsV1().Deployments("team").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resourcesOf(t, plain, false)).To(HaveKey("apps/v1"))
}

// TestLocalAPIServices: local ones need no aggregator.
func TestLocalAPIServices(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := add(t, c, "red")
	all := apiServicesOf(t, red).ApiregistrationV1().APIServices()
	_, err := all.Create(t.Context(), &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.example.com"},
		Spec:       apiregistrationv1.APIServiceSpec{Group: "example.com", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 100},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resourcesOf(t, red, false)).To(And(HaveKey("apiregistration.k8s.io/v1"), Not(HaveKey("example.com/v1"))))
	g.Expect(chain.Aggregates(red)).To(BeFalse())
	g.Expect(all.Delete(t.Context(), "v1.example.com", metav1.DeleteOptions{})).To(Succeed())
}

// TestEndlessDocuments: documents of an aggregated API are read to a limit, for
// discovery and for both versions of OpenAPI, and the API itself is served.
func TestEndlessDocuments(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	e := newExtension(t, "red")
	e.endless = make(chan int, 1000)
	red := addExtension(t, c, e)
	largest := func() (most int) {
		for {
			select {
			case n := <-e.endless:
				most = max(most, n)
			default:
				return most
			}
		}
	}
	beLimited := And(BeNumerically(">", 4<<20), BeNumerically("<", 32<<20)) // with the buffers of sockets
	g.Eventually(largest).WithTimeout(later).Should(beLimited, "discovery")
	_, found, err := definitionsOf(t, red).Discovery().ServerGroupsAndResources()
	g.Expect(err).To(MatchError(HaveSuffix("stale GroupVersion discovery: " + metricsVersion)))
	g.Expect(found).To(ContainElement(HaveField("GroupVersion", "apps/v1")))
	g.Expect(documentOf(t, red)).To(ContainSubstring(`"io.k8s.api.apps.v1.Deployment"`))
	var documents handler3.OpenAPIV3Discovery
	g.Expect(json.NewDecoder(fetch(t, red, "/openapi/v3", nil).Body).Decode(&documents)).To(Succeed())
	g.Expect(documents.Paths).To(And(HaveKey("apis/apps/v1"), Not(HaveKey("apis/"+metricsVersion))))
	g.Eventually(largest).WithTimeout(later).Should(beLimited, "OpenAPI")
	g.Expect(who(t, red)).To(HaveKeyWithValue("server", "red"))
}
