package hosted_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// certificateIsSigned tests that a client is authenticated with an approved
// certificate, which is valid for the requested time.
func certificateIsSigned(t *testing.T, client kubernetes.Interface, plane *hosted.ControlPlane) {
	t.Parallel()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	request := requestFor(g, key, certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature)
	request.Spec.ExpirationSeconds = new(int32(3600))
	signed := approved(t.Context(), g, client, request, func(s *certificatesv1.CertificateSigningRequestStatus) bool { return s.Certificate != nil })

	block, _ := pem.Decode(signed.Status.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(certificate.NotAfter).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(plane.RESTConfig())
	config.CertData, config.KeyData = signed.Status.Certificate, private
	who, err := clientOf(t, config).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(who.Status.UserInfo.Username).To(Equal("jane"))
	g.Expect(who.Status.UserInfo.Groups).To(ContainElement("team"))
}

// certificateIsForClients: the authority signs for nothing else.
func certificateIsForClients(t *testing.T, client kubernetes.Interface) {
	t.Parallel()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	for _, usages := range [][]certificatesv1.KeyUsage{
		{certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth}, {certificatesv1.UsageDigitalSignature},
	} {
		failed := approved(t.Context(), g, client, requestFor(g, key, usages...), func(s *certificatesv1.CertificateSigningRequestStatus) bool {
			return len(s.Conditions) > 1
		})
		g.Expect(failed.Status.Conditions).To(ContainElement(HaveField("Type", certificatesv1.CertificateFailed)))
		g.Expect(failed.Status.Certificate).To(BeNil())
	}
}

// requestFor is a request of jane, who is in a team.
func requestFor(g Gomega, key *ecdsa.PrivateKey, usages ...certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	asked, err := cert.MakeCSR(key, &pkix.Name{CommonName: "jane", Organization: []string{"team"}}, nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "jane-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: usages, Request: asked,
		},
	}
}

// approved makes and approves a request, and waits until its status is done.
func approved(
	ctx context.Context, g Gomega, client kubernetes.Interface, request *certificatesv1.CertificateSigningRequest,
	done func(*certificatesv1.CertificateSigningRequestStatus) bool,
) *certificatesv1.CertificateSigningRequest {
	requests := client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(ctx, request, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	_, err = requests.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() bool {
		request, err = requests.Get(ctx, request.Name, metav1.GetOptions{})
		return err == nil && done(&request.Status)
	}).WithTimeout(soon).WithPolling(tick).Should(BeTrue())
	return request
}
