package chain_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

const (
	domain    = "cluster.test"
	issuer    = "https://kubernetes.default.svc." + domain
	namespace = "team"
	robot     = "robot"
)

// cluster is a tenant with credentials, that listens.
type cluster struct {
	name   string
	tenant *chain.Tenant
	ca     pki.Authority
	proxy  pki.Authority
	key    []byte
	public []byte
	url    string
	// admin sends requests as the control plane itself.
	admin kubernetes.Interface

	mu         sync.Mutex // guards transports
	transports []*http.Transport
}

// newClusters returns two tenants of one chain. All names in them are equal.
func newClusters(t testing.TB) (red, blue *cluster, all *clientv3.Client) {
	t.Helper()
	c, all := newChain(t)
	return newCluster(t, c, "red"), newCluster(t, c, "blue"), all
}

func newCluster(t testing.TB, of *chain.Chain, name string, change ...func(*chain.Spec)) *cluster {
	t.Helper()
	g := NewWithT(t)
	c := &cluster{name: name, ca: newAuthority(t, "kubernetes"), proxy: newAuthority(t, "front-proxy")}
	var err error
	c.key, c.public, err = pki.NewSigningKey()
	g.Expect(err).NotTo(HaveOccurred())
	spec := specOf(t, name)
	spec.ClusterDomain, spec.SigningKey = domain, c.key
	spec.ClientCA, spec.FrontProxyCA = c.ca.CertPEM, c.proxy.CertPEM
	for _, each := range change {
		each(&spec)
	}
	c.tenant, err = of.Add(spec)
	g.Expect(err).NotTo(HaveOccurred())
	c.admin, err = kubernetes.NewForConfig(c.tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	c.listen(t, of)
	c.fill(t)
	return c
}

func (c *cluster) listen(t testing.TB, of *chain.Chain) {
	t.Helper()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	c.url = "https://" + listener.Addr().String()
	pair, err := c.ca.Server(c.name, []string{c.name}, nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	run(t, func(ctx context.Context) error {
		return of.Serve(ctx, c.tenant, listener, func() (cert, key []byte) { return pair.CertPEM, pair.KeyPEM })
	})
	t.Cleanup(c.closeConnections)
}

// closeConnections closes the connections of all clients, which delay the stop
// of a server for a second.
func (c *cluster) closeConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.transports {
		each.CloseIdleConnections()
	}
}

func newAuthority(t testing.TB, name string) pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority(name, time.Hour, time.Now())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return ca
}

// fill creates a namespace with a service account. All authenticated users may
// review themselves.
func (c *cluster) fill(t testing.TB) {
	t.Helper()
	g := NewWithT(t)
	createNamespace(t, c.admin, namespace)
	c.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: robot}})
	c.allow(t, "basic", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated", APIGroup: rbacv1.GroupName},
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"selfsubjectreviews"}})
	g.Eventually(func() error {
		_, err := c.whoAmI(t.Context(), c.certificate(t, "anybody"))
		return err
	}, later).Should(Succeed())
}

// create creates an object in the namespace.
func (c *cluster) create(t testing.TB, object any) metav1.Object {
	t.Helper()
	var created metav1.Object
	var err error
	core := c.admin.CoreV1()
	switch object := object.(type) {
	case *corev1.ServiceAccount:
		created, err = core.ServiceAccounts(namespace).Create(t.Context(), object, metav1.CreateOptions{})
	case *corev1.Pod:
		created, err = core.Pods(namespace).Create(t.Context(), object, metav1.CreateOptions{})
	case *corev1.Secret:
		created, err = core.Secrets(namespace).Create(t.Context(), object, metav1.CreateOptions{})
	case *corev1.Node:
		created, err = core.Nodes().Create(t.Context(), object, metav1.CreateOptions{})
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return created
}

// allow allows a subject to do something in the whole cluster.
func (c *cluster) allow(t testing.TB, name string, who rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	g := NewWithT(t)
	meta := metav1.ObjectMeta{Name: name}
	_, err := c.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{who},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// credentials authenticate requests from outside.
type credentials func(*rest.Config)

// certificate returns a client certificate of the cluster.
func (c *cluster) certificate(t testing.TB, name string, groups ...string) credentials {
	t.Helper()
	return certificateOf(t, c.ca, name, groups...)
}

func certificateOf(t testing.TB, ca pki.Authority, name string, groups ...string) credentials {
	t.Helper()
	pair, err := ca.Client(name, groups, time.Hour, time.Now())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return usePair(pair)
}

// usePair sends a certificate, whatever authorities the server names.
func usePair(pair pki.KeyPair) credentials {
	return func(config *rest.Config) {
		config.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			loaded, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
			return &loaded, err
		}
	}
}

func bearer(token string) credentials {
	return func(config *rest.Config) { config.BearerToken = token }
}

// client returns a client from outside. Each one has connections of its own.
func (c *cluster) client(with ...credentials) *kubernetes.Clientset {
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	c.mu.Lock()
	c.transports = append(c.transports, transport)
	c.mu.Unlock()
	config := &rest.Config{Host: c.url, QPS: -1, Transport: transport}
	for _, each := range with {
		each(config)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// whoAmI returns the user that the cluster authenticates.
func (c *cluster) whoAmI(ctx context.Context, with ...credentials) (authenticationv1.UserInfo, error) {
	review, err := c.client(with...).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// token requests a token of the service account.
func (c *cluster) token(t testing.TB, spec authenticationv1.TokenRequestSpec) *authenticationv1.TokenRequest {
	t.Helper()
	created, err := c.admin.CoreV1().ServiceAccounts(namespace).CreateToken(
		t.Context(), robot, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return created
}
