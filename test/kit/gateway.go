package kit

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Through returns a tenant whose admin reaches it through the gateway.
func Through(ctx context.Context, super *local.SuperCluster, t *local.Tenant) *local.Tenant {
	GinkgoHelper()
	config, err := super.GatewayConfig(ctx, t)
	Expect(err).NotTo(HaveOccurred())
	Expect(config.ServerName).To(BeEmpty())
	reached := *t
	reached.Config = config
	// The gateway knows the tenant a moment after vc-manager has written it.
	Eventually(func() error {
		reached.Client, err = local.NewClient(config)
		if err != nil {
			return err
		}
		return reached.Client.List(ctx, &corev1.NamespaceList{})
	}).WithTimeout(Soon).Should(Succeed())
	return &reached
}

// AllowClientCA lets the gateway read the client CA of the super cluster.
func AllowClientCA(ctx context.Context, super *local.SuperCluster) {
	GinkgoHelper()
	reads := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "vc-gateway-reads-client-ca"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: rbac.Namespace, Name: rbac.Gateway}},
	}
	Create(ctx, super.Client, reads)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, reads)).To(Succeed()) })
}

// Door is the address of a gateway, for raw requests.
type Door struct {
	Address string
	// CA verifies its certificate, in PEM, and TLS trusts it.
	CA  []byte
	TLS *tls.Config
}

func newDoor(address string, ca []byte) Door {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(ca)).To(BeTrue())
	return Door{Address: address, CA: ca, TLS: &tls.Config{RootCAs: roots}}
}

// DoorOf returns the gateway of a client configuration.
func DoorOf(config *rest.Config) Door {
	GinkgoHelper()
	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	return newDoor(server.Host, config.CAData)
}

// StartGateway starts a gateway with the shipped roles, until the container of
// specs ends. It returns the address when it knows a tenant.
func StartGateway(ctx context.Context, super *local.SuperCluster, knows *local.Tenant, change ...func(*app.Options)) Door {
	GinkgoHelper()
	config, err := super.GatewayAccount(ctx)
	Expect(err).NotTo(HaveOccurred())
	gateway, err := local.StartGateway(config, GinkgoLogr, change...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(gateway.Stop()).To(Succeed()) })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Secret.Namespace, Name: gateway.Secret.Name}}
	Eventually(Read(ctx, super.Client, secret)).WithTimeout(Soon).Should(HaveField("Data", HaveKey("ca.crt")))
	Expect(Get(ctx, super.Client, secret)).To(Succeed())
	door := newDoor(gateway.Address, secret.Data["ca.crt"])
	admin := UserOf(super, knows, "admin", time.Hour, "system:masters")
	Eventually(func() (int, error) {
		transport := &http.Transport{TLSClientConfig: door.As(admin)}
		defer transport.CloseIdleConnections()
		reply, err := local.Ask(ctx, &http.Client{Transport: transport}, door.Address, "/tenants/"+knows.Key()+"/api")
		return reply.Code, err
	}).WithTimeout(Soon).Should(Equal(http.StatusOK))
	return door
}

// As returns the TLS configuration of a client with a certificate.
func (d Door) As(certificate tls.Certificate) *tls.Config {
	config := d.TLS.Clone()
	config.Certificates = []tls.Certificate{certificate}
	return config
}

// Ask sends a request, with the certificate of a user or without. Headers
// alternate names and values.
func (d Door) Ask(ctx context.Context, certificate *tls.Certificate, path string, headers ...string) local.Reply {
	GinkgoHelper()
	config := d.TLS
	if certificate != nil {
		config = d.As(*certificate)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	reply, err := local.Ask(ctx, &http.Client{Transport: transport}, d.Address, path, headers...)
	Expect(err).NotTo(HaveOccurred())
	return reply
}

// Open sends a request with the certificate of a user, whose response the spec
// reads. It ends with the spec.
func (d Door) Open(ctx context.Context, certificate *tls.Certificate, path string) *http.Response {
	GinkgoHelper()
	transport := &http.Transport{TLSClientConfig: d.As(*certificate)}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+d.Address+path, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := transport.RoundTrip(request)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	})
	return response
}

// Send sends the bytes of a request on a connection of its own, and returns the
// status of the response.
func (d Door) Send(ctx context.Context, request string) int {
	GinkgoHelper()
	conn, err := (&tls.Dialer{Config: d.TLS}).DialContext(ctx, "tcp", d.Address)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte(request))
	Expect(err).NotTo(HaveOccurred())
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	Expect(err).NotTo(HaveOccurred(), "%q", request)
	_ = response.Body.Close() // it may be cut off
	return response.StatusCode
}

// UserOf issues a certificate of a tenant's own CA.
func UserOf(super *local.SuperCluster, t *local.Tenant, name string, validity time.Duration, groups ...string) tls.Certificate {
	GinkgoHelper()
	return UserIn(super, t.Key(), name, validity, groups...)
}

// SuperUser issues a certificate of the super cluster's CA.
func SuperUser(super *local.SuperCluster, name string, groups ...string) tls.Certificate {
	GinkgoHelper()
	return UserIn(super, "super", name, time.Hour, groups...)
}

// UserIn issues a certificate of the CA of a control plane.
func UserIn(super *local.SuperCluster, controlPlane, name string, validity time.Duration, groups ...string) tls.Certificate {
	GinkgoHelper()
	pair := UserPEM(super, controlPlane, name, validity, groups...)
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	Expect(err).NotTo(HaveOccurred())
	return certificate
}

// UserPEM issues the same in PEM.
func UserPEM(super *local.SuperCluster, controlPlane, name string, validity time.Duration, groups ...string) pki.KeyPair {
	GinkgoHelper()
	authority, err := local.ReadAuthority(super.PKIFile(controlPlane, "ca.pem"))
	Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Client(name, groups, validity, time.Now())
	Expect(err).NotTo(HaveOccurred())
	return pair
}

// ProjectsOf returns a client of the API of projects, for a user of the super
// cluster with a certificate.
func ProjectsOf(super *local.SuperCluster, door Door, name string, groups ...string) client.Client {
	GinkgoHelper()
	pair := UserPEM(super, "super", name, time.Hour, groups...)
	scheme := runtime.NewScheme()
	Expect(projectsv1alpha1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(&rest.Config{
		Host:            "https://" + door.Address + "/tenants/projects",
		TLSClientConfig: rest.TLSClientConfig{CAData: door.CA, CertData: pair.CertPEM, KeyData: pair.KeyPEM},
		QPS:             -1,
	}, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// ProjectRequest returns a request for a project.
func ProjectRequest(name, template string) *projectsv1alpha1.ProjectRequest {
	return &projectsv1alpha1.ProjectRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: projectsv1alpha1.ProjectRequestSpec{Template: template},
	}
}

// Project returns a project to be read or deleted.
func Project(name string) *projectsv1alpha1.Project {
	return &projectsv1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// ProjectTemplate creates a template in a namespace of its own. The cleanup
// deletes it with the projects that were requested from it, and waits.
func ProjectTemplate(ctx context.Context, super *local.SuperCluster, name string, change ...func(*tenancyv1alpha1.ProjectTemplateSpec)) {
	GinkgoHelper()
	template := &tenancyv1alpha1.ProjectTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: tenancyv1alpha1.ProjectTemplateSpec{
		Namespace:  name,
		Requesters: []tenancyv1alpha1.Member{{Kind: tenancyv1alpha1.MemberGroup, Name: "system:authenticated"}},
	}}
	for _, f := range change {
		f(&template.Spec)
	}
	Create(ctx, super.Client, Namespace(name), template)
	DeferCleanup(func(ctx SpecContext) {
		Expect(super.Client.Delete(ctx, template)).To(Succeed())
		claims := func() ([]tenancyv1alpha1.ProjectClaim, error) {
			list := &tenancyv1alpha1.ProjectClaimList{}
			err := super.Client.List(ctx, list)
			return slices.DeleteFunc(list.Items, func(c tenancyv1alpha1.ProjectClaim) bool { return c.Spec.Template != name }), err
		}
		all, err := claims()
		Expect(err).NotTo(HaveOccurred())
		for i := range all {
			Expect(client.IgnoreNotFound(super.Client.Delete(ctx, &all[i]))).To(Succeed())
		}
		Eventually(claims).WithTimeout(6 * Soon).Should(BeEmpty())
		Expect(super.Client.Delete(ctx, Namespace(name))).To(Succeed())
	})
}
