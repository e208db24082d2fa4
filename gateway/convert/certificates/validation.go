package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/cert"
)

// minExpiration is the shortest time in seconds for which a certificate is
// requested.
const minExpiration = 600

// usages are those of the API.
var usages = sets.New(
	certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment,
	certificatesv1.UsageKeyEncipherment, certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment,
	certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign, certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly,
	certificatesv1.UsageAny, certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
	certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME, certificatesv1.UsageIPsecEndSystem,
	certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping,
	certificatesv1.UsageOCSPSigning, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
)

func validateSpec(spec *certificatesv1.CertificateSigningRequestSpec) field.ErrorList {
	at := field.NewPath("spec")
	var wrong field.ErrorList
	if err := checkRequest(spec.Request); err != nil {
		wrong = append(wrong, field.Invalid(at.Child("request"), spec.Request, err.Error()))
	}
	if len(spec.Usages) == 0 {
		wrong = append(wrong, field.Required(at.Child("usages"), ""))
	}
	for i, usage := range spec.Usages {
		if !usages.Has(usage) {
			wrong = append(wrong, field.NotSupported(at.Child("usages").Index(i), usage, sets.List(usages)))
		}
		if slices.Contains(spec.Usages[:i], usage) {
			wrong = append(wrong, field.Duplicate(at.Child("usages").Index(i), usage))
		}
	}
	if message := checkSigner(spec.SignerName); message != "" {
		wrong = append(wrong, field.Invalid(at.Child("signerName"), spec.SignerName, message))
	}
	if seconds := spec.ExpirationSeconds; seconds != nil && *seconds < minExpiration {
		message := "may not specify a duration less than 600 seconds (10 minutes)"
		wrong = append(wrong, field.Invalid(at.Child("expirationSeconds"), *seconds, message))
	}
	return wrong
}

// checkRequest returns an error if a request is none, or was not signed with its key.
func checkRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != cert.CertificateRequestBlockType {
		return errors.New("PEM block type must be " + cert.CertificateRequestBlockType)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}

// checkSigner returns what is wrong with the name of a signer: it is a domain with a
// name.
func checkSigner(signer string) string {
	domain, name, found := strings.Cut(signer, "/")
	if !found || !strings.Contains(domain, ".") || signer == "kubernetes.io/legacy-unknown" {
		return "must be a fully qualified domain and path of the form 'example.com/signer-name'"
	}
	return strings.Join(append(validation.IsDNS1123Subdomain(domain), validation.IsDNS1123Subdomain(name)...), ", ")
}

// validateConditions returns what is wrong with the conditions of a change.
func validateConditions(before, after []certificatesv1.CertificateSigningRequestCondition) field.ErrorList {
	at := field.NewPath("status", "conditions")
	var wrong field.ErrorList
	for i, condition := range after {
		if condition.Type == "" {
			wrong = append(wrong, field.Required(at.Index(i).Child("type"), ""))
		}
		if allowed := statusesOf(condition); !allowed.Has(condition.Status) {
			wrong = append(wrong, field.NotSupported(at.Index(i).Child("status"), condition.Status, sets.List(allowed)))
		}
		if find(after[:i], condition.Type) != nil {
			wrong = append(wrong, field.Duplicate(at.Index(i).Child("type"), condition.Type))
		}
	}
	if find(after, certificatesv1.CertificateApproved) != nil && find(after, certificatesv1.CertificateDenied) != nil {
		wrong = append(wrong, field.Invalid(at, "", "Approved and Denied conditions are mutually exclusive"))
	}
	for _, of := range append(slices.Clone(decisions), certificatesv1.CertificateFailed) {
		if find(before, of) != nil && find(after, of) == nil {
			wrong = append(wrong, field.Forbidden(at, `updates may not remove a condition of type "`+string(of)+`"`))
		}
	}
	return wrong
}

// statusesOf returns the statuses that a condition may have.
func statusesOf(condition certificatesv1.CertificateSigningRequestCondition) sets.Set[corev1.ConditionStatus] {
	if isDecision(condition) || condition.Type == certificatesv1.CertificateFailed {
		return sets.New(corev1.ConditionTrue)
	}
	return sets.New(corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)
}

// validateSigned returns what is wrong with what a signer writes.
func validateSigned(before, after *Request) field.ErrorList {
	at := field.NewPath("status")
	var wrong field.ErrorList
	for _, of := range decisions {
		if find(after.Status.Conditions, of) != nil && find(before.Status.Conditions, of) == nil {
			wrong = append(wrong, field.Forbidden(at.Child("conditions"), `updates may not add a condition of type "`+string(of)+`"`))
		}
	}
	if bytes.Equal(before.Status.Certificate, after.Status.Certificate) {
		return wrong
	}
	if len(before.Status.Certificate) > 0 {
		wrong = append(wrong, field.Forbidden(at.Child("certificate"), "updates may not modify existing certificate content"))
	}
	if message := checkCertificate(after.Status.Certificate); message != "" {
		wrong = append(wrong, field.Invalid(at.Child("certificate"), "<certificate data>", message))
	}
	return wrong
}

// checkCertificate returns what is wrong with a signed certificate and its chain.
func checkCertificate(data []byte) string {
	found := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != cert.CertificateBlockType || len(block.Headers) > 0 {
			return "only CERTIFICATE PEM blocks without headers are allowed"
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err.Error()
		}
		found++
	}
	if found == 0 {
		return "must contain at least one CERTIFICATE PEM block"
	}
	return ""
}
