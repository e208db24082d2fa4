package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/pki"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// apiserverName is what apiservers are called in the certificates that they show kubelets.
const apiserverName = "kube-apiserver-kubelet-client"

// pkiFile is a file of the PKI of a hosted control plane.
func pkiFile(controlPlane, name string) string {
	return filepath.Join(super.Dir, "controlplanes", controlPlane, "pki", name)
}

// certificateOf is the certificate by which a tenant's apiserver shows kubelets who it is.
func certificateOf(t *local.Tenant) tls.Certificate {
	GinkgoHelper()
	return pairIn(pkiFile(t.Key(), "kubelet-client.pem"))
}

// pairIn reads a certificate and its key from one file.
func pairIn(file string) tls.Certificate {
	GinkgoHelper()
	pair, err := tls.LoadX509KeyPair(file, file)
	Expect(err).NotTo(HaveOccurred())
	return pair
}

// authorityIn reads an authority and its key from one file.
func authorityIn(file string) pki.Authority {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	key := bytes.Index(data, []byte("-----BEGIN PRIVATE KEY"))
	Expect(key).To(BeNumerically(">", 0))
	return pki.Authority{CertPEM: data[:key], KeyPEM: data[key:]}
}

func newAuthority() pki.Authority {
	GinkgoHelper()
	ca, err := pki.NewAuthority("kubelet-client-ca", time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	return ca
}

// signedBy is a certificate like that of an apiserver.
func signedBy(ca pki.Authority, validity time.Duration) tls.Certificate {
	GinkgoHelper()
	pair, err := ca.Client(apiserverName, []string{"system:masters"}, validity, time.Now())
	Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	Expect(err).NotTo(HaveOccurred())
	return certificate
}

// ghost makes a tenant that has a root namespace and never a control plane, for which nothing is published but by specs.
func ghost(ctx context.Context) *tenancyv1alpha1.VirtualCluster {
	GinkgoHelper()
	vc := virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
		vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: "none"}
	})
	create(ctx, super.Client, vc)
	DeferCleanup(func(ctx SpecContext) { beginRemoval(ctx, vc) })
	Eventually(read(ctx, super.Client, vc)).Should(HaveField("Status.ClusterNamespace", Not(BeEmpty())))
	Expect(get(ctx, super.Client, vc)).To(Succeed())
	return vc
}

// publish publishes an authority for a tenant, as vc-manager does.
func publish(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, ca pki.Authority) {
	GinkgoHelper()
	published := &corev1.ConfigMap{}
	published.Namespace, published.Name = vc.Status.ClusterNamespace, names.KubeletClientCAConfigMap
	published.Labels = map[string]string{names.VCName: vc.Name, names.VCNamespace: vc.Namespace}
	published.Annotations = map[string]string{names.VCUID: string(vc.UID)}
	published.Data = map[string]string{names.KubeletClientCAKey: string(ca.CertPEM)}
	if err := super.Client.Update(ctx, published.DeepCopy()); client.IgnoreNotFound(err) == nil && err != nil {
		create(ctx, super.Client, published)
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
}

// reply is what the agent says.
type reply struct {
	Code int
	Body string
}

// answer matches a reply.
func answer(code int, body gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return And(HaveField("Code", code), HaveField("Body", body))
}

// clientWith is a client that shows a certificate, whoever is to like it, and takes any server.
func clientWith(certificate tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify:   true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
	}}}
}

// ask asks the agent for a path as it stands, on a connection of its own. Headers are names and values.
func ask(ctx context.Context, agent *local.Agent, certificate tls.Certificate, path string, headers ...string) (reply, error) {
	GinkgoHelper()
	c := clientWith(certificate)
	defer c.CloseIdleConnections()
	return askWith(ctx, c, agent, path, headers...)
}

func askWith(ctx context.Context, c *http.Client, agent *local.Agent, path string, headers ...string) (reply, error) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+agent.Address, nil)
	Expect(err).NotTo(HaveOccurred())
	// Opaque, so that the client leaves it as it is.
	path, request.URL.RawQuery, _ = strings.Cut(path, "?")
	request.URL.Opaque = "//" + agent.Address + path
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, string(body)}, err
}
