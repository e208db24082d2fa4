package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/cert"
)

// errNoCertificate is returned for data that has no certificate in PEM.
var errNoCertificate = errors.New("there is no certificate")

// soon is how long before its expiry a certificate is reported, unless its life
// is shorter: then a fifth of it. vc-manager and vc-host renew theirs long before.
const soon = 14 * 24 * time.Hour

// expiry returns a result if the first certificate of a PEM file has expired, is
// not valid yet, or expires soon. Its name completes the message.
func expiry(name string, data []byte, now time.Time) (Result, bool) {
	certificates, err := cert.ParseCertsPEM(data)
	if err != nil || len(certificates) == 0 {
		return failed("", "%s: %v", name, errNoCertificate), true
	}
	c := certificates[0]
	switch {
	case now.After(c.NotAfter):
		return failed("", "%s expired at %s", name, c.NotAfter.Format(time.RFC3339)), true
	case now.Before(c.NotBefore):
		return failed("", "%s is not valid before %s", name, c.NotBefore.Format(time.RFC3339)), true
	case c.NotAfter.Sub(now) < min(soon, c.NotAfter.Sub(c.NotBefore)/5):
		return warning("", "%s expires at %s", name, c.NotAfter.Format(time.RFC3339)), true
	}
	return Result{}, false
}

// pairProblem returns why a key does not belong to a certificate.
func pairProblem(certificate, key []byte) error {
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return errors.New("the private key does not belong to the certificate")
	}
	return nil
}

// signatureProblem returns why clients that trust authorities reject the
// certificate of a server with a name, at a time.
func signatureProblem(certificate, authorities []byte, name string, now time.Time) error {
	parsed, err := cert.ParseCertsPEM(certificate)
	if err != nil || len(parsed) == 0 {
		return errNoCertificate
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return errors.New("no authority is configured")
	}
	intermediates := x509.NewCertPool()
	for _, c := range parsed[1:] {
		intermediates.AddCert(c)
	}
	_, err = parsed[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: intermediates, CurrentTime: now})
	if err != nil {
		return fmt.Errorf("the apiserver rejects the certificate: %w", err)
	}
	return nil
}
