package integration

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	webhookconfig "github.com/virtualcluster/virtualcluster/config/webhook"
	"github.com/virtualcluster/virtualcluster/controllers/admission"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// webhookSecret is the Secret of the webhook's certificate.
var webhookSecret = client.ObjectKey{Namespace: rbac.Namespace, Name: "vc-manager-webhook"}

// webhookReplica is a replica of vc-manager with nothing but the webhook, by the
// permissions of vc-manager's service account.
type webhookReplica struct {
	address, probes string
}

// startWebhook starts a replica until the end of the container of specs. It
// serves a loopback address, at which the super cluster reaches it.
func startWebhook(ctx context.Context) webhookReplica {
	GinkgoHelper()
	account, err := super.ManagerConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	replica := webhookReplica{address: kit.FreeAddress(ctx), probes: kit.FreeAddress(ctx)}
	address := netip.MustParseAddrPort(replica.address)
	certificate := &servingcert.Keeper{
		Secret: webhookSecret,
		Hosts:  servingcert.Hosts{IPs: []net.IP{address.Addr().AsSlice()}},
	}
	shared := component.Options{Logger: logger, HealthProbeBindAddress: replica.probes}
	options := shared.Manager("webhook", super.Client.Scheme())
	options.WebhookServer = webhook.NewServer(webhook.Options{
		Host: address.Addr().String(), Port: int(address.Port()),
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = certificate.GetCertificate }},
	})
	mgr, err := ctrl.NewManager(account, options)
	Expect(err).NotTo(HaveOccurred())
	registration := admission.NewRegistration(mgr)
	certificate.Publish, certificate.Watch = registration.Publish, registration.Object()
	Expect(certificate.SetupWithManager(mgr, rbac.Manager)).To(Succeed())
	Expect(admission.SetupWithManager(mgr)).To(Succeed())
	working, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(working) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return replica
}

// ready returns a function that reads the status code of the readiness check.
func (r webhookReplica) ready(ctx context.Context) func() (int, error) {
	return kit.Probed(ctx, r.probes, "/readyz/webhook")
}

// served returns a function that reads the serving certificate, in PEM.
func (r webhookReplica) served(ctx context.Context) func() (string, error) {
	return func() (string, error) {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		conn, err := dialer.DialContext(ctx, "tcp", r.address)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})), nil
	}
}

// register creates the shipped configuration of the webhook, for a replica at
// its address, and deletes it at the end of the container of specs.
func (r webhookReplica) register(ctx context.Context) {
	GinkgoHelper()
	configuration, err := webhookconfig.Configuration()
	Expect(err).NotTo(HaveOccurred())
	called := &configuration.Webhooks[0].ClientConfig
	url := "https://" + r.address + *called.Service.Path
	*called = admissionregistrationv1.WebhookClientConfig{URL: &url}
	configuration.Webhooks[0].TimeoutSeconds = new(int32(30)) // a busy machine delays an answer
	kit.Create(ctx, super.Client, configuration)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, configuration)).To(Succeed()) })
}

// published reads the authorities by which the super cluster verifies the webhook.
func published(ctx context.Context) func() (string, error) {
	return func() (string, error) {
		configuration, err := webhookconfig.Configuration()
		if err != nil {
			return "", err
		}
		err = kit.Get(ctx, super.Client, configuration)
		return string(configuration.Webhooks[0].ClientConfig.CABundle), err
	}
}

// kept returns a function that reads an entry of the webhook's Secret.
func kept(ctx context.Context, key string) func() (string, error) {
	return func() (string, error) {
		secret := &corev1.Secret{}
		err := super.Client.Get(ctx, webhookSecret, secret)
		return string(secret.Data[key]), err
	}
}

// replace writes entries of the webhook's Secret.
func replace(ctx context.Context, data map[string][]byte) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: webhookSecret.Namespace, Name: webhookSecret.Name}}
	kit.Edit(ctx, super.Client, secret, func(s *corev1.Secret) { maps.Copy(s.Data, data) })
}

// webhookAnswers waits until the super cluster gets answers of the webhook.
func webhookAnswers(ctx context.Context) {
	GinkgoHelper()
	vc := virtualCluster(withRule("objekt.metadata"))
	Eventually(func() error { return super.Client.Create(ctx, vc, client.DryRunAll) }).Should(
		MatchError(ContainSubstring("undeclared reference to 'objekt'")))
}

var _ = Describe("The certificate of the manager's webhook", Ordered, func() {
	var replicas [2]webhookReplica

	BeforeAll(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(super.Client.Delete(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: webhookSecret.Namespace, Name: webhookSecret.Name},
		}))).To(Succeed())
		for i := range replicas {
			replicas[i] = startWebhook(ctx)
		}
		for _, replica := range replicas {
			Eventually(replica.ready(ctx)).Should(Equal(http.StatusInternalServerError))
			Consistently(replica.ready(ctx)).Should(Equal(http.StatusInternalServerError), "the webhook is not registered")
		}
		replicas[0].register(ctx)
	})

	// agree waits until all replicas serve the certificate in the Secret, and
	// the super cluster trusts its authority.
	agree := func(ctx context.Context) (certificate string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			certificate, _ = kept(ctx, "tls.crt")()
			g.Expect(certificate).NotTo(BeEmpty())
			for _, replica := range replicas {
				g.Expect(replica.served(ctx)()).To(Equal(certificate))
			}
			authorities, err := kept(ctx, servingcert.AuthoritiesKey)()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(published(ctx)()).To(Equal(authorities))
		}).WithContext(ctx).Should(Succeed())
		return certificate
	}

	It("is served as soon as the super cluster can verify it", func(ctx SpecContext) {
		for _, replica := range replicas {
			Eventually(replica.ready(ctx)).Should(Equal(http.StatusOK))
		}
	})

	It("is one for replicas that start at once without a Secret", func(ctx SpecContext) {
		agree(ctx)
		webhookAnswers(ctx)
	})

	It("is replaced while it is served, when it has expired", func(ctx SpecContext) {
		before := agree(ctx)
		ca := pki.Authority{}
		for key, into := range map[string]*[]byte{servingcert.AuthoritiesKey: &ca.CertPEM, "ca.key": &ca.KeyPEM} {
			data, err := kept(ctx, key)()
			Expect(err).NotTo(HaveOccurred())
			*into = []byte(data)
		}
		loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
		expired, err := ca.Server("webhook", nil, loopback, time.Minute, time.Now().Add(-time.Hour))
		Expect(err).NotTo(HaveOccurred())
		replace(ctx, map[string][]byte{"tls.crt": expired.CertPEM, "tls.key": expired.KeyPEM})
		Eventually(kept(ctx, "tls.crt")).ShouldNot(BeElementOf(before, string(expired.CertPEM)))
		Expect(agree(ctx)).NotTo(BeElementOf(before, string(expired.CertPEM)))
		Expect(kept(ctx, servingcert.AuthoritiesKey)()).To(Equal(string(ca.CertPEM)), "the authority is kept")
		webhookAnswers(ctx)
	})

	It("is replaced while it is served, when it is of another authority", func(ctx SpecContext) {
		agree(ctx)
		ca, err := pki.NewAuthority("foreign", time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		foreign, err := ca.Server("webhook", nil, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		replace(ctx, map[string][]byte{"tls.crt": foreign.CertPEM, "tls.key": foreign.KeyPEM, servingcert.AuthoritiesKey: ca.CertPEM})
		Eventually(kept(ctx, servingcert.AuthoritiesKey)).ShouldNot(ContainSubstring(string(ca.CertPEM)))
		agree(ctx)
		webhookAnswers(ctx)
	})

	It("is made again when its Secret is deleted, and published again when that is undone", func(ctx SpecContext) {
		before := agree(ctx)
		Expect(super.Client.Delete(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: webhookSecret.Namespace, Name: webhookSecret.Name},
		})).To(Succeed())
		Eventually(kept(ctx, "tls.crt")).ShouldNot(BeElementOf("", before))
		agree(ctx)
		configuration, err := webhookconfig.Configuration()
		Expect(err).NotTo(HaveOccurred())
		kit.Edit(ctx, super.Client, configuration, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.CABundle = nil
		})
		agree(ctx)
		webhookAnswers(ctx)
	})
})

var _ = Describe("The manager's webhook", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		replica := startWebhook(ctx)
		replica.register(ctx)
		Eventually(replica.ready(ctx)).Should(Equal(http.StatusOK))
		webhookAnswers(ctx)
	})

	It("rejects rules that do not compile when they are written, and nothing else", func(ctx SpecContext) {
		red := tenant(ctx)
		const why = "spec.quota.rules[0].expression: Invalid value: at 1:1: undeclared reference to 'objekt'"
		changed := red.VC.DeepCopy()
		Eventually(func() error {
			Expect(kit.Get(ctx, super.Client, changed)).To(Succeed())
			withRule("objekt.metadata")(changed)
			return super.Client.Update(ctx, changed)
		}).Should(And(MatchError(apierrors.IsInvalid, "invalid"), MatchError(ContainSubstring(why))))
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), withRule("tenant.name != ''"))
	})

	It("rejects an alias that another VirtualCluster has", func(ctx SpecContext) {
		red := tenant(ctx, withAlias("taken"))
		taken := And(MatchError(apierrors.IsInvalid, "invalid"), MatchError(ContainSubstring(`spec.alias: Duplicate value: "taken"`)))
		other := virtualCluster(withAlias("taken"))
		Expect(super.Client.Create(ctx, other)).To(taken)
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), withRule("tenant.name != ''"))
		blue := tenant(ctx).VC.DeepCopy()
		Eventually(func() error {
			Expect(kit.Get(ctx, super.Client, blue)).To(Succeed())
			withAlias("taken")(blue)
			return super.Client.Update(ctx, blue)
		}).Should(taken)
		removeTenant(ctx, red.VC)
		Expect(super.Client.Create(ctx, other, client.DryRunAll)).To(Succeed())
	})

	It("rejects fields that a converted tenant does not support", func(ctx SpecContext) {
		paused := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Paused = true }
		rejected := And(MatchError(apierrors.IsInvalid, "invalid"), MatchError(ContainSubstring("spec.paused: Forbidden: converted tenants do not have it yet")))
		Expect(super.Client.Create(ctx, virtualCluster(converted, paused), client.DryRunAll)).To(rejected)
		light := virtualCluster(converted)
		kit.Create(ctx, super.Client, light)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, light))).To(Succeed()) })
		Eventually(func() error {
			changed := light.DeepCopy()
			Expect(kit.Get(ctx, super.Client, changed)).To(Succeed())
			paused(changed)
			return super.Client.Update(ctx, changed)
		}).WithContext(ctx).Should(rejected)
		kit.Edit(ctx, super.Client, light, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Weight = 3 })
	})

	It("is not called for other writes, so that they do not depend on the manager", func(ctx SpecContext) {
		red := tenant(ctx, withRule("true"))
		configuration, err := webhookconfig.Configuration()
		Expect(err).NotTo(HaveOccurred())
		kit.Edit(ctx, super.Client, configuration, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			nobody := "https://127.0.0.1:1/"
			c.Webhooks[0].ClientConfig.URL = &nobody
		})
		change := func(f func(*tenancyv1alpha1.VirtualCluster)) error {
			vc, err := kit.Read(ctx, super.Client, red.VC)()
			if err != nil {
				return err
			}
			f(vc)
			return super.Client.Update(ctx, vc)
		}
		attempt := 0
		Eventually(func() error { // each brings another rule, until the super cluster has learned of the change
			attempt++
			return change(withRule(fmt.Sprintf("%d > 0", attempt)))
		}).Should(MatchError(ContainSubstring("failed calling webhook")))
		Eventually(change).WithArguments(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Weight = 3 }).Should(Succeed())
	})
})
