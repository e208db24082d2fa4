package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509/pkix"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// certificateOf returns the client certificate of a tenant's apiserver for
// kubelets.
func certificateOf(t *local.Tenant) tls.Certificate {
	GinkgoHelper()
	return pairIn(super.PKIFile(t.Key(), "kubelet-client.pem"))
}

// pairIn reads a certificate and its key from one file.
func pairIn(file string) tls.Certificate {
	GinkgoHelper()
	pair, err := local.ReadPair(file)
	Expect(err).NotTo(HaveOccurred())
	return pair
}

// authorityIn reads an authority and its key from one file.
func authorityIn(file string) pki.Authority {
	GinkgoHelper()
	ca, err := local.ReadAuthority(file)
	Expect(err).NotTo(HaveOccurred())
	return ca
}

func newAuthority() pki.Authority {
	GinkgoHelper()
	ca, err := pki.NewAuthority("kubelet-client-ca", time.Hour, time.Now())
	Expect(err).NotTo(HaveOccurred())
	return ca
}

// signedBy issues a certificate like that of an apiserver.
func signedBy(ca pki.Authority, validity time.Duration) tls.Certificate {
	GinkgoHelper()
	certificate, err := local.KubeletClient(ca, validity)
	Expect(err).NotTo(HaveOccurred())
	return certificate
}

// mintedBy returns a certificate with the name of an apiserver that a tenant's
// admin requests and approves in the tenant's own API.
func mintedBy(ctx context.Context, t *local.Tenant) tls.Certificate {
	GinkgoHelper()
	clients := clientset(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "minted"}}
	request.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
	request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
	// The groups of kubelets and of kubeadm's apiservers. The apiserver rejects
	// system:masters.
	request.Spec.Request, err = cert.MakeCSR(key, &pkix.Name{
		CommonName: "kube-apiserver-kubelet-client", Organization: []string{"kubeadm:cluster-admins", "system:nodes"},
	}, nil, nil)
	Expect(err).NotTo(HaveOccurred())
	kit.Create(ctx, t.Client, request)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByItsAdmin"},
	}
	requests := clients.CertificatesV1().CertificateSigningRequests()
	request, err = requests.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	signed, err := csr.WaitForCertificate(ctx, clients, request.Name, request.UID)
	Expect(err).NotTo(HaveOccurred())
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(signed, private)
	Expect(err).NotTo(HaveOccurred())
	return certificate
}

// ghost creates a tenant that has a root namespace and never a control plane.
// Only specs publish its authority.
func ghost(ctx context.Context) *tenancyv1alpha1.VirtualCluster {
	GinkgoHelper()
	vc := virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
		vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: "none"}
	})
	kit.Create(ctx, super.Client, vc)
	DeferCleanup(func(ctx SpecContext) { beginRemoval(ctx, vc) })
	Eventually(kit.Read(ctx, super.Client, vc)).Should(HaveField("Status.ClusterNamespace", Not(BeEmpty())))
	Expect(kit.Get(ctx, super.Client, vc)).To(Succeed())
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
		kit.Create(ctx, super.Client, published)
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
}

// answer matches a reply.
func answer(code int, body gomegatypes.GomegaMatcher) gomegatypes.GomegaMatcher {
	return And(HaveField("Code", code), HaveField("Body", body))
}

// ask sends the agent a request for a raw path, on a new connection. Headers
// alternate names and values.
func ask(ctx context.Context, agent *local.Agent, certificate tls.Certificate, path string, headers ...string) (local.Reply, error) {
	c := local.ClientWithCertificate(certificate)
	defer c.CloseIdleConnections()
	return local.Ask(ctx, c, agent.Address, path, headers...)
}

// servedBy returns the certificate that the agent serves on a new connection.
func servedBy(ctx context.Context, agent *local.Agent) ([]byte, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", agent.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw, nil
}
