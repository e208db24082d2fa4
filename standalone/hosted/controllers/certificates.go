package controllers

import (
	"context"
	"crypto"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	capihelper "k8s.io/kubernetes/pkg/apis/certificates/v1"
	"k8s.io/kubernetes/pkg/controller/certificates"
	"k8s.io/kubernetes/pkg/controller/certificates/authority"
	"k8s.io/kubernetes/pkg/controller/certificates/cleaner"
)

// The validity of client certificates that are requested with the CSR API.
const (
	shortestClientCertificate = 10 * time.Minute
	// clientCertificateBackdate tolerates clocks that are behind, except for
	// certificates with a validity below shortLife.
	clientCertificateBackdate = 5 * time.Minute
	shortLife                 = 8 * time.Hour
)

// certificateControllers returns the controllers that issue approved
// certificates and delete old requests.
func certificateControllers() []Controller {
	return []Controller{
		{"certificatesigningrequest-signing-controller", buildClientSigner},
		{"certificatesigningrequest-cleaner-controller", buildRequestCleaner},
	}
}

func buildClientSigner(ctx context.Context, env *Environment) (func(context.Context), error) {
	key, err := keyutil.ParsePrivateKeyPEM(env.cluster.Authority.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("read the key of the authority: %w", err)
	}
	private, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of the authority cannot sign")
	}
	published, err := certutil.ParseCertsPEM(env.cluster.Authority.CertPEM)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	signer := clientSigner{
		requests: env.client.CertificatesV1().CertificateSigningRequests(),
		ca:       authority.CertificateAuthority{Certificate: published[0], PrivateKey: private},
		longest:  env.cluster.Validity,
	}
	c := certificates.NewCertificateController(ctx, "csrsigning-kube-apiserver-client", env.client,
		env.typed.Certificates().V1().CertificateSigningRequests(), signer.sign)
	return workers(1, c), nil
}

func buildRequestCleaner(_ context.Context, env *Environment) (func(context.Context), error) {
	c := cleaner.NewCSRCleanerController(env.client.CertificatesV1().CertificateSigningRequests(),
		env.typed.Certificates().V1().CertificateSigningRequests())
	return workers(1, c), nil
}

// clientSigner signs certificates for clients of the apiserver (the signer
// kubernetes.io/kube-apiserver-client). That of kube-controller-manager watches
// the authority's files, and a machine lacks the inotify instances to do so for
// many control planes.
type clientSigner struct {
	requests certificatesclient.CertificateSigningRequestInterface
	ca       authority.CertificateAuthority
	longest  time.Duration
}

// sign signs an approved request, or records in its status why it cannot.
func (s *clientSigner) sign(ctx context.Context, request *certificatesv1.CertificateSigningRequest) error {
	if request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName ||
		!certificates.IsCertificateRequestApproved(request) || certificates.HasTrueCondition(request, certificatesv1.CertificateFailed) {
		return nil
	}
	if err := forClients(request.Spec.Usages); err != nil {
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue,
			Reason: "SignerValidationFailure", Message: err.Error(), LastUpdateTime: metav1.Now(),
		})
	} else if request.Status.Certificate, err = s.certificate(request.Spec); err != nil {
		return fmt.Errorf("sign CertificateSigningRequest %s: %w", request.Name, err)
	}
	if _, err := s.requests.UpdateStatus(ctx, request, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update the status of CertificateSigningRequest %s: %w", request.Name, err)
	}
	return nil
}

func (s *clientSigner) certificate(spec certificatesv1.CertificateSigningRequestSpec) ([]byte, error) {
	asked, err := capihelper.ParseCSR(spec.Request)
	if err != nil {
		return nil, err
	}
	der, err := s.ca.Sign(asked.Raw, authority.PermissiveSigningPolicy{
		TTL: s.life(spec.ExpirationSeconds), Usages: spec.Usages, Backdate: clientCertificateBackdate, Short: shortLife,
	})
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// life returns the validity of a certificate: as requested, within limits.
func (s *clientSigner) life(seconds *int32) time.Duration {
	if seconds == nil {
		return s.longest
	}
	return min(max(time.Duration(*seconds)*time.Second, shortestClientCertificate), s.longest)
}

// forClients returns an error if usages are not those of a client certificate.
func forClients(usages []certificatesv1.KeyUsage) error {
	found := false
	for _, usage := range usages {
		switch usage {
		case certificatesv1.UsageClientAuth:
			found = true
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Errorf("a client certificate cannot have the usage %q", usage)
		}
	}
	if !found {
		return fmt.Errorf("a client certificate must have the usage %q", certificatesv1.UsageClientAuth)
	}
	return nil
}
