package host

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

func TestParseCredentials(t *testing.T) {
	g := NewWithT(t)
	authority, err := pki.NewAuthority("store", time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	one, err := authority.Client("vc-host", nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	other, err := authority.Client("vc-host", nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	good := map[string][]byte{"ca.crt": authority.CertPEM, "tls.crt": one.CertPEM, "tls.key": one.KeyPEM}
	for name, test := range map[string]struct {
		change map[string][]byte
		want   string
	}{
		"good":               {nil, ""},
		"no authority":       {map[string][]byte{"ca.crt": nil}, "ca.crt"},
		"a damaged one":      {map[string][]byte{"ca.crt": []byte("damaged")}, "ca.crt"},
		"no key":             {map[string][]byte{"tls.key": nil}, "tls.crt and tls.key"},
		"the key of another": {map[string][]byte{"tls.key": other.KeyPEM}, "tls.crt and tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data := maps.Clone(good)
			maps.Copy(data, test.change)
			credentials, err := parseCredentials(data)
			if test.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
				g.Expect(err.Error()).NotTo(ContainSubstring("PRIVATE KEY"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			config := credentials.config()
			shown, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
			g.Expect(err).NotTo(HaveOccurred())
			first := shown.Leaf

			next, err := parseCredentials(map[string][]byte{"ca.crt": authority.CertPEM, "tls.crt": other.CertPEM, "tls.key": other.KeyPEM})
			g.Expect(err).NotTo(HaveOccurred())
			credentials.client.Store(next.client.Load())
			shown, err = config.GetClientCertificate(&tls.CertificateRequestInfo{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(shown.Leaf.Equal(first)).To(BeFalse(), "a renewed certificate is used")
		})
	}
}

// failing is a client whose requests fail.
type failing struct {
	client.Reader // nil: no other methods are called

	err error
}

// Get implements client.Reader.
func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

// TestCredentialsThatCannotBeRead: a super cluster that does not respond says
// nothing about a store.
func TestCredentialsThatCannotBeRead(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"missing":         {apierrors.NewNotFound(secrets, "fast"), tenancyv1alpha1.ReasonCredentialsInvalid},
		"forbidden":       {apierrors.NewForbidden(secrets, "fast", nil), tenancyv1alpha1.ReasonCredentialsInvalid},
		"too late":        {context.DeadlineExceeded, ""},
		"overloaded":      {apierrors.NewTooManyRequests("later", 1), ""},
		"without network": {errors.New("connection refused"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &storeController{live: failing{err: test.err}, reports: func(client.ObjectKey) bool { return true }}
			store := &tenancyv1alpha1.ControlPlaneStore{}
			found, err := s.check(t.Context(), store)
			g.Expect(err).To(MatchError(test.err))
			g.Expect(found.reason).To(Equal(test.want))
			if test.want == "" {
				g.Expect(s.report(t.Context(), store, store, found)).To(Succeed(), "nothing is written")
			}
		})
	}
}
