package kit

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/gateway/convert"
	"github.com/virtualcluster/virtualcluster/gateway/convert/accounts"
	"github.com/virtualcluster/virtualcluster/gateway/convert/conversion"
	"github.com/virtualcluster/virtualcluster/gateway/convert/discovery"
	"github.com/virtualcluster/virtualcluster/gateway/convert/expressions"
	"github.com/virtualcluster/virtualcluster/gateway/convert/fence"
	"github.com/virtualcluster/virtualcluster/gateway/convert/index"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/rbac"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Converter serves converted tenants on a super cluster.
type Converter struct {
	super  *local.SuperCluster
	index  *index.Index
	crds   *resources.Index
	tokens *convert.Sealer
	roles  *rbac.Store
	pace   *expressions.Pace
}

// Converted is a converted tenant, whose user may do all in it.
type Converted struct {
	Key    string
	Config *rest.Config
	Client client.WithWatch

	leaks   *leaks
	handler http.Handler
}

// StartConverter starts a converter on a super cluster that has what converted
// tenants need.
func StartConverter(ctx context.Context, super *local.SuperCluster) *Converter {
	GinkgoHelper()
	key := make([]byte, 32)
	_, err := rand.Read(key)
	Expect(err).NotTo(HaveOccurred())
	tokens, err := convert.NewSealer(key)
	Expect(err).NotTo(HaveOccurred())
	roles, err := rbac.NewStore(super.Config)
	Expect(err).NotTo(HaveOccurred())
	c := &Converter{super: super, index: index.New(), crds: resources.New(), tokens: tokens, roles: roles, pace: expressions.NewPace()}
	c.follow()
	c.waitForPolicies(ctx)
	return c
}

// follow keeps the index up to date until the cleanup.
func (c *Converter) follow() {
	GinkgoHelper()
	clients, err := metadata.NewForConfig(c.super.Config)
	Expect(err).NotTo(HaveOccurred())
	informer := metadatainformer.NewFilteredMetadataInformer(clients, corev1.SchemeGroupVersion.WithResource("namespaces"), "", 0,
		cache.Indexers{}, func(options *metav1.ListOptions) { options.LabelSelector = names.Converted }).Informer()
	_, err = informer.AddEventHandler(c.index.Handler())
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	go informer.RunWithContext(ctx)
	c.roles.Start(ctx)
	Eventually(c.roles.HasSynced).Should(BeTrue())
}

// waitForPolicies waits until the apiserver enforces the policies.
func (c *Converter) waitForPolicies(ctx context.Context) {
	GinkgoHelper()
	probe := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Labels: map[string]string{names.Converted: "probe"}}}
	Create(ctx, c.super.Client, probe)
	DeferCleanup(func(ctx SpecContext) { Expect(c.super.Client.Delete(ctx, probe)).To(Succeed()) })
	Eventually(func() (map[string]string, error) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: probe.Name, Name: "probe"}}
		err := c.super.Client.Create(ctx, object, client.DryRunAll)
		return object.Labels, err
	}).WithContext(ctx).Should(HaveKey(names.Converted))
	// The policies know new definitions after half a minute.
	role := &unstructured.Unstructured{}
	role.SetGroupVersionKind(kinds.Shelf.WithKind("Role"))
	role.SetNamespace(probe.Name)
	role.SetName("probe")
	Eventually(func() error { return c.super.Client.Create(ctx, role.DeepCopy(), client.DryRunAll) }).
		WithContext(ctx).WithTimeout(2 * Soon).Should(Succeed())
}

// Tenant serves a converted tenant until the cleanup, which fails if a response
// had a name of the super cluster.
func (c *Converter) Tenant(ctx context.Context, key string, options ...func(*convert.Handler)) *Converted {
	GinkgoHelper()
	fenced := c.account(ctx, key)
	single := rest.CopyConfig(fenced)
	single.NextProtos = []string{"http/1.1"}
	found, err := discovery.New(c.super.Config)
	Expect(err).NotTo(HaveOccurred())
	at, err := url.Parse(c.super.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	permissions := rbac.Tenant{Key: key, Store: c.roles}
	t := &Converted{Key: key, leaks: &leaks{names: [][]byte{[]byte(key), []byte(kinds.Shelf.Group)}}}
	handler := &convert.Handler{
		Tenant: key, SuperURL: at, Super: transportOf(c.super.Config), Fenced: transportOf(fenced), FencedUpgrades: transportOf(single),
		Accounts: accounts.Accounts{
			Namer:    naming.Namer{Key: key, Namespaces: c.index},
			Reviewer: identity.NewReviewer(kubernetes.NewForConfigOrDie(c.super.Config).AuthenticationV1().TokenReviews()),
		},
		Namespaces: c.index, CRDs: c.crds, Churn: resources.NewChurn(), Expressions: c.pace, Discovery: found.For(key, c.crds), Tokens: c.tokens,
		Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "baseline", names.VCName: "converted", names.VCNamespace: "kit",
		},
		Conversion:               conversion.Gateway{URL: "https://gw.example.com", Key: []byte("secret")},
		AllowsConversionWebhooks: true,
		Annotations:              map[string]string{names.GatewayHost: "gw.example.com", names.GatewayPort: "443", names.GatewayCA: "unread"},
		Authorize:                union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), permissions), RBAC: permissions,
	}
	for _, option := range options {
		option(handler)
	}
	t.handler = handler
	t.Config, t.Client = t.serve("admin", user.SystemPrivilegedGroup)
	DeferCleanup(func() { Expect(t.leaks.found()).To(BeEmpty(), "names of the super cluster in responses") })
	DeferCleanup(func(ctx SpecContext) { c.remove(ctx, key) })
	return t
}

// account creates the tenant's service account, and returns its configuration.
func (c *Converter) account(ctx context.Context, key string) *rest.Config {
	GinkgoHelper()
	root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key, Name: names.ConvertedAccount}}
	Create(ctx, c.super.Client, root, account, fence.RootBinding(key))
	DeferCleanup(func(ctx SpecContext) { Expect(c.super.Client.Delete(ctx, root)).To(Succeed()) })
	token := &authenticationv1.TokenRequest{}
	Expect(c.super.Client.SubResource("token").Create(ctx, account, token)).To(Succeed())
	config := rest.AnonymousClientConfig(c.super.Config)
	config.BearerToken = token.Status.Token
	return config
}

func transportOf(config *rest.Config) http.RoundTripper {
	GinkgoHelper()
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	return transport
}

// remove deletes the namespaces of a tenant in the super cluster.
func (c *Converter) remove(ctx context.Context, key string) {
	GinkgoHelper()
	var namespaces corev1.NamespaceList
	Expect(c.super.Client.List(ctx, &namespaces, client.MatchingLabels{names.Converted: key})).To(Succeed())
	for i := range namespaces.Items {
		Expect(client.IgnoreNotFound(c.super.Client.Delete(ctx, &namespaces.Items[i]))).To(Succeed())
	}
}

// As returns the tenant as another user sees it, who is in the groups and in that
// of all users.
func (t *Converted) As(name string, groups ...string) *Converted {
	GinkgoHelper()
	as := &Converted{Key: t.Key, leaks: t.leaks, handler: t.handler}
	as.Config, as.Client = t.serve(name, groups...)
	return as
}

// serve serves the tenant as one user.
func (t *Converted) serve(name string, groups ...string) (*rest.Config, client.WithWatch) {
	GinkgoHelper()
	who := &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.handler.ServeHTTP(&witness{ResponseWriter: w, request: r, leaks: t.leaks}, r.WithContext(request.WithUser(r.Context(), who)))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	DeferCleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}, QPS: -1}
	c, err := local.NewClient(config)
	Expect(err).NotTo(HaveOccurred())
	return config, c
}

// Kubeconfig writes a kubeconfig of the tenant.
func (t *Converted) Kubeconfig() string {
	GinkgoHelper()
	file := filepath.Join(TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"t": {Server: t.Config.Host, CertificateAuthorityData: t.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"t": {Token: "unread"}},
		Contexts:       map[string]*clientcmdapi.Context{"t": {Cluster: "t", AuthInfo: "t"}},
		CurrentContext: "t",
	}, file)).To(Succeed())
	return file
}

// Ask sends a request with a path as it is. Headers alternate names and values.
func (t *Converted) Ask(ctx context.Context, method, path, body string, headers ...string) local.Reply {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, t.Config.Host+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	response, err := transportOf(t.Config).RoundTrip(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return local.Reply{Code: response.StatusCode, Body: string(data)}
}

// leaks are responses with names that no tenant may see.
type leaks struct {
	names [][]byte

	mu  sync.Mutex
	all []string
}

func (l *leaks) check(r *http.Request, data []byte) {
	for _, name := range l.names {
		if strings.Contains(r.URL.Path, string(name)) {
			continue // an error repeats what the client asked for
		}
		if i := bytes.Index(data, name); i >= 0 {
			l.mu.Lock()
			l.all = append(l.all, fmt.Sprintf("%s %s: …%s…", r.Method, r.URL, data[max(0, i-100):min(len(data), i+100)]))
			l.mu.Unlock()
		}
	}
}

func (l *leaks) found() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// witness reads each response.
type witness struct {
	http.ResponseWriter

	request *http.Request
	leaks   *leaks
}

// Unwrap is for http.ResponseController.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *witness) WriteHeader(code int) {
	var headers bytes.Buffer
	_ = w.Header().Write(&headers)
	w.leaks.check(w.request, headers.Bytes())
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *witness) Write(data []byte) (int, error) {
	w.leaks.check(w.request, data)
	return w.ResponseWriter.Write(data)
}
