package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// callers send requests through gateways, each over a connection of its own, which
// they verify by the tenant's current kubeconfig.
type callers struct {
	of       *local.Tenant
	admin    tls.Certificate
	sent     atomic.Int64
	mu       sync.Mutex
	failures []error
}

// call sends a request that trusts authorities in PEM.
func (c *callers) call(ctx context.Context, address string, authorities []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return errors.New("the kubeconfig has no CA")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{c.admin}}}
	defer transport.CloseIdleConnections()
	reply, err := local.Ask(ctx, &http.Client{Transport: transport}, address, "/tenants/"+c.of.Key()+"/api/v1/namespaces")
	if err == nil && reply.Code != http.StatusOK {
		err = fmt.Errorf("code %d: %s", reply.Code, reply.Body)
	}
	return err
}

// run calls until ctx is done.
func (c *callers) run(ctx context.Context, address string) {
	for ctx.Err() == nil {
		config, err := super.GatewayConfig(ctx, c.of)
		if err == nil {
			err = c.call(ctx, address, config.CAData)
		}
		if ctx.Err() != nil {
			return
		}
		c.sent.Add(1)
		if err != nil {
			c.mu.Lock()
			c.failures = append(c.failures, err)
			c.mu.Unlock()
		}
	}
}

var _ = Describe("The CA of the gateway's serving certificate", Ordered, func() {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-gateway-tls"}}
	var (
		red, blue *local.Tenant
		doors     [2]kit.Door
		calls     *callers
		file      string
		own       []byte // the CA of the gateway that vc-standalone runs, at whose URL the tenants are
	)

	// bundle reads the authorities in the Secret.
	bundle := func(ctx context.Context) []byte {
		GinkgoHelper()
		Expect(kit.Get(ctx, super.Client, secret)).To(Succeed())
		return secret.Data[servingcert.AuthoritiesKey]
	}
	// mount writes the Secret into the file of vc-manager, as a kubelet does.
	mount := func(ctx context.Context) {
		GinkgoHelper()
		Expect(os.WriteFile(file, bytes.Join([][]byte{own, bundle(ctx)}, nil), 0o600)).To(Succeed())
	}
	// ask asks for a step, and waits until it is taken.
	ask := func(ctx context.Context, step servingcert.Step) {
		GinkgoHelper()
		kit.Edit(ctx, super.Client, secret, func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, names.RotateCA, string(step)) })
		Eventually(kit.Read(ctx, super.Client, secret)).WithTimeout(kit.Soon).ShouldNot(HaveField("Annotations", HaveKey(names.RotateCA)))
	}
	// trusted asserts that all that verify the gateway trust what is in the Secret, and
	// no other authorities.
	trusted := func(ctx context.Context) {
		GinkgoHelper()
		mount(ctx)
		want := string(bytes.Join([][]byte{own, bundle(ctx)}, nil))
		Eventually(func(g Gomega) {
			for _, t := range []*local.Tenant{red, blue} {
				config, err := super.GatewayConfig(ctx, t)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(config.CAData)).To(Equal(want), "the kubeconfig")
			}
			inside := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: blue.Super("default")}}
			g.Expect(kit.Get(ctx, super.Client, inside)).To(Succeed())
			g.Expect(inside.Annotations[names.GatewayCA]).To(Equal(want), "the namespace")
			forPods := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inside.Name, Name: "kube-root-ca.crt"}}
			g.Expect(kit.Get(ctx, super.Client, forPods)).To(Succeed())
			g.Expect(forPods.Data["ca.crt"]).To(Equal(want), "what pods are given")
			webhooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: names.ConvertedAdmission}}
			g.Expect(kit.Get(ctx, super.Client, webhooks)).To(Succeed())
			g.Expect(webhooks.Webhooks).NotTo(BeEmpty())
			for i := range webhooks.Webhooks {
				g.Expect(string(webhooks.Webhooks[i].ClientConfig.CABundle)).To(Equal(strings.TrimSpace(want)), "the webhooks")
			}
		}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	}
	// signedBy waits until all replicas serve a certificate that is verified by
	// authorities alone.
	signedBy := func(ctx context.Context, authorities []byte) {
		GinkgoHelper()
		for _, door := range doors {
			Eventually(calls.call).WithArguments(ctx, door.Address, authorities).WithTimeout(kit.Soon).Should(Succeed())
		}
	}

	BeforeAll(func(ctx SpecContext) {
		red, blue = tenant(ctx), kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		for i := range doors {
			doors[i] = kit.StartGateway(ctx, super, red)
		}
		file = filepath.Join(super.Dir, "vc-gateway", "ca.crt")
		own = must(os.ReadFile(file))
		DeferCleanup(func() { Expect(os.WriteFile(file, own, 0o600)).To(Succeed()) })
		at := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "none"}}
		ignored := kit.Validating("ignored", at, kit.ForRequests("", "configmaps", onDelete), forLabel("none"))
		Eventually(func() error { return blue.Client.Create(ctx, ignored) }).Should(Succeed())
		calls = &callers{of: red, admin: userOf(red, "admin", masters)}
		trusted(ctx)
	})

	It("is rotated in steps while requests are sent, and none fails", func(ctx SpecContext) {
		running, stop := context.WithCancel(ctx)
		defer stop()
		var all sync.WaitGroup
		for _, door := range doors {
			all.Go(func() { calls.run(running, door.Address) })
		}
		old := bundle(ctx)
		before := must(super.GatewayConfig(ctx, red)).CAData

		ask(ctx, servingcert.Start)
		successor, kept := bytes.CutPrefix(bundle(ctx), old)
		Expect(kept).To(BeTrue(), "the old CA is trusted")
		Expect(successor).NotTo(BeEmpty())
		trusted(ctx)
		signedBy(ctx, old)

		ask(ctx, servingcert.Switch)
		signedBy(ctx, successor)
		for _, door := range doors {
			Expect(calls.call(ctx, door.Address, before)).To(MatchError(ContainSubstring("unknown authority")), "a kubeconfig of before")
		}
		trusted(ctx)

		ask(ctx, servingcert.Finish)
		Expect(bundle(ctx)).To(Equal(successor))
		trusted(ctx)
		sent := calls.sent.Load()
		Eventually(calls.sent.Load).WithTimeout(kit.Soon).Should(BeNumerically(">", sent+20))
		stop()
		all.Wait()
		AddReportEntry("requests", calls.sent.Load())
		Expect(calls.failures).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It("is not rotated by a step that is out of order", func(ctx SpecContext) {
		before := bundle(ctx)
		kit.Edit(ctx, super.Client, secret, func(s *corev1.Secret) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, names.RotateCA, string(servingcert.Switch))
		})
		Consistently(kit.Read(ctx, super.Client, secret)).Should(And(
			HaveField("Annotations", HaveKey(names.RotateCA)), HaveField("Data", HaveKeyWithValue(servingcert.AuthoritiesKey, before))))
		kit.Edit(ctx, super.Client, secret, func(s *corev1.Secret) { delete(s.Annotations, names.RotateCA) })
		signedBy(ctx, before)
	})
})

var _ = Describe("The CA by which a control plane trusts the gateway", func() {
	const tenYears = 10 * 365 * 24 * time.Hour
	// asks sends the request of a user as the gateway does, with a certificate of a CA.
	asks := func(ctx context.Context, t *local.Tenant, ca pki.Authority) (int, error) {
		own, err := ca.Client(gatewayaccess.User, nil, time.Hour, time.Now())
		if err != nil {
			return 0, err
		}
		config := rest.AnonymousClientConfig(t.Config)
		config.CertData, config.KeyData = own.CertPEM, own.KeyPEM
		direct, err := rest.HTTPClientFor(config)
		if err != nil {
			return 0, err
		}
		defer direct.CloseIdleConnections()
		reply, err := local.Ask(ctx, direct, strings.TrimPrefix(config.Host, "https://"), "/api/v1/namespaces",
			"X-Remote-User", "jane", "X-Remote-Group", masters)
		return reply.Code, err
	}

	DescribeTable("has a successor, and both are trusted", func(ctx SpecContext, isolation tenancyv1alpha1.Isolation) {
		red := tenant(ctx, kit.WithIsolation(isolation))
		file := super.PKIFile(red.Key(), "gateway-ca.pem")
		old := must(pki.NewAuthority("gateway-ca", tenYears, time.Now().Add(-tenYears*9/10)))
		Expect(asks(ctx, red, must(local.ReadAuthority(file)))).To(Equal(http.StatusOK))
		Expect(asks(ctx, red, old)).To(Equal(http.StatusUnauthorized))
		Expect(os.WriteFile(file, slices.Concat(old.CertPEM, old.KeyPEM), 0o600)).To(Succeed())
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			metav1.SetMetaDataAnnotation(&vc.ObjectMeta, names.RestartedAt, "now")
		})
		Eventually(asks).WithArguments(ctx, red, old).WithTimeout(2 * kit.Soon).Should(Equal(http.StatusOK))
		all := must(local.ReadAuthority(file))
		authorities := pki.ParseAuthorities(all.CertPEM, all.KeyPEM, time.Now())
		Expect(authorities).To(HaveLen(2))
		Expect(authorities[0]).To(Equal(old))
		Expect(asks(ctx, red, authorities[1])).To(Equal(http.StatusOK))
		// Less than a sixth is left, so that the gateway's certificate is of the successor.
		through(ctx, red)
		access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: red.Key(), Name: names.GatewaySecret}}
		Eventually(func() error {
			if err := kit.Get(ctx, super.Client, access); err != nil {
				return err
			}
			return parsedFrom(access.Data["tls.crt"]).CheckSignatureFrom(parsedFrom(authorities[1].CertPEM))
		}).WithTimeout(kit.Soon).Should(Succeed())
		Expect(through(ctx, red).Client.List(ctx, &corev1.NamespaceList{})).To(Succeed())
	},
		Entry("in a shared chain", tenancyv1alpha1.IsolationShared),
		Entry("in a chain of its own", tenancyv1alpha1.IsolationDedicated),
	)
})

// parsedFrom parses the first certificate in PEM.
func parsedFrom(data []byte) *x509.Certificate {
	GinkgoHelper()
	parsed, err := cert.ParseCertsPEM(data)
	Expect(err).NotTo(HaveOccurred())
	return parsed[0]
}
