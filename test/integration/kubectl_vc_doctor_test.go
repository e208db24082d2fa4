package integration

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/admission"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// startComponents starts vc-manager and vc-syncer until the end of the spec.
func (h helmed) startComponents(ctx context.Context) {
	GinkgoHelper()
	port := strconv.Itoa(int(netip.MustParseAddrPort(kit.FreeAddress(ctx)).Port()))
	none := []string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}
	h.start(ctx, "vc-manager", os.Getenv(managerBinary), append(none, "--webhook-port="+port)...)
	h.start(ctx, "vc-syncer", os.Getenv(local.SyncerBinary), none...)
}

var _ = Describe("kubectl vc doctor", Ordered, ContinueOnFailure, Label("chart"), func() {
	var super helmed

	// doctor runs kubectl vc doctor as an admin.
	doctor := func(ctx context.Context, args ...string) printed {
		GinkgoHelper()
		return kubectlVCWith(ctx, filepath.Join(super.Dir, "super.kubeconfig"), append([]string{"doctor"}, args...)...)
	}
	// verdict returns the JSONPath of the verdict of a check.
	verdict := func(check string) string {
		return `-o=jsonpath={.checks[?(@.name=="` + check + `")].verdict}`
	}

	BeforeAll(func(ctx SpecContext) {
		length := format.MaxLength
		format.MaxLength = 0
		DeferCleanup(func() { format.MaxLength = length })
		super = newHelmed(ctx)
	})

	It("checks a cluster before the installation", func(ctx SpecContext) {
		p := doctor(ctx)
		golden("doctor-before", p.Out+p.Err)
		Expect(p.Code).To(Equal(exit.Unhealthy), "there is no default StorageClass")
		Expect(doctor(ctx, verdict("storage")).Out).To(Equal("Failed"))
	})

	It("names the permissions that an account lacks", func(ctx SpecContext) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "reader"}}
		kit.Create(ctx, super.Client, account)
		config, err := super.AccountConfig(ctx, account)
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(super.Dir, "reader.kubeconfig")
		Expect(local.WriteKubeconfig(file, config)).To(Succeed())
		p := kubectlVCWith(ctx, file, "doctor")
		Expect(p.Code).To(Equal(exit.Unhealthy))
		golden("doctor-denied", p.Out+p.Err)
	})

	DescribeTable("concludes from connections of pods whether NetworkPolicies are enforced", func(ctx SpecContext, name string, codes map[string]int32) {
		ended := make(chan printed, 1)
		go func() {
			defer GinkgoRecover()
			ended <- doctor(ctx, append(message("network-policies"), "--probe", "--probe-image=kubectl-vc:dev", "--probe-timeout=1m")...)
		}()
		// Simulated nodes start pods, which never end.
		pods := &corev1.PodList{}
		for pod, code := range codes {
			Eventually(func(g Gomega) {
				g.Expect(super.Client.List(ctx, pods, client.MatchingFields{"metadata.name": pod})).To(Succeed())
				g.Expect(pods.Items).To(ConsistOf(HaveField("Status.Phase", corev1.PodRunning)))
			}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
			kit.SetPodStatus(ctx, super.Client, &pods.Items[0], func(s *corev1.PodStatus) {
				s.Phase = corev1.PodSucceeded
				s.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
			})
		}
		golden(name, (<-ended).Out)
		Eventually(func(g Gomega) {
			namespaces := &corev1.NamespaceList{}
			g.Expect(super.Client.List(ctx, namespaces)).To(Succeed())
			g.Expect(namespaces.Items).NotTo(ContainElement(HaveField("Name", HavePrefix("vc-doctor-"))))
		}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	},
		Entry("all as expected", NodeTimeout(6*kit.Soon), "doctor-probe-enforced", map[string]int32{"allowed": 0, "ingress-denied": 0, "egress-denied": 0}),
		Entry("a connection that a policy denies", NodeTimeout(6*kit.Soon), "doctor-probe-not-enforced", map[string]int32{"allowed": 0, "ingress-denied": 20, "egress-denied": 20}),
		Entry("a pod that does not end", Label("long"), NodeTimeout(6*kit.Soon), "doctor-probe-undecided", map[string]int32{"allowed": 0, "ingress-denied": 0}),
	)

	It("finds an installation that works", func(ctx SpecContext) {
		super.Must(ctx, "install", "virtualcluster", chartDir, "--create-namespace", "--set", "vcHost.enabled=false", "--wait")
		super.startComponents(ctx)
		Eventually(doctor).WithContext(ctx).WithArguments(verdict("leases")).WithTimeout(3 * kit.Soon).WithPolling(time.Second).
			Should(HaveField("Out", "OK"))
		Eventually(doctor).WithContext(ctx).WithArguments(verdict("webhook")).WithPolling(time.Second).Should(HaveField("Out", "OK"))
		p := doctor(ctx)
		golden("doctor-installed", p.Out+p.Err)
	}, NodeTimeout(kit.Longest))

	It("reports certificates that have expired, and those of another authority", func(ctx SpecContext) {
		earlier := time.Now().Add(-3 * time.Hour)
		foreign, err := pki.NewAuthority("foreign", 24*time.Hour, earlier)
		Expect(err).NotTo(HaveOccurred())
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admission.ConfigurationName}}
		kit.Edit(ctx, super.Client, configuration, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.CABundle = foreign.CertPEM
		})
		golden("doctor-webhook-foreign", doctor(ctx, message("webhook")...).Out)

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-manager-webhook"}}
		past, err := foreign.Server("webhook", nil, nil, time.Hour, earlier)
		Expect(err).NotTo(HaveOccurred())
		kit.Edit(ctx, super.Client, secret, func(s *corev1.Secret) {
			s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = past.CertPEM, past.KeyPEM
		})
		golden("doctor-webhook-expired", doctor(ctx, message("webhook")...).Out)
	})

	It("reports components that do not run, and rights that they lack", func(ctx SpecContext) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: rbac.Manager}}
		kit.Edit(ctx, super.Client, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
		golden("doctor-scaled-down", doctor(ctx, message("vc-manager")...).Out)
		Eventually(doctor).WithContext(ctx).WithArguments(verdict("leases")).WithTimeout(3 * kit.Soon).WithPolling(time.Second).
			Should(HaveField("Out", "Failed"))

		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "vc-syncer-base"}}
		kit.Edit(ctx, super.Client, role, func(r *rbacv1.ClusterRole) { r.Rules = r.Rules[1:] })
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: rbac.Syncer}}
		kit.Edit(ctx, super.Client, binding, func(b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Namespace = metav1.NamespaceDefault })
		golden("doctor-roles", doctor(ctx, message("roles")...).Out)
	}, NodeTimeout(4*kit.Soon))

	It("reports stores that are down, and credentials that have expired", func(ctx SpecContext) {
		super.Must(ctx, "upgrade", "virtualcluster", chartDir, "--force-conflicts",
			"--set", "vcStore.enabled=false", "--set", "vcHost.enabled=true")
		golden("doctor-no-store", doctor(ctx, message("stores")...).Out)

		earlier := time.Now().Add(-3 * time.Hour)
		authority, err := pki.NewAuthority("store", 24*time.Hour, earlier)
		Expect(err).NotTo(HaveOccurred())
		valid, err := authority.Client("vc-host", nil, time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "down"},
			Data:       map[string][]byte{"ca.crt": authority.CertPEM, corev1.TLSCertKey: valid.CertPEM, corev1.TLSPrivateKeyKey: valid.KeyPEM},
		}
		store := &tenancyv1alpha1.ControlPlaneStore{
			ObjectMeta: metav1.ObjectMeta{Name: "down"},
			Spec:       tenancyv1alpha1.ControlPlaneStoreSpec{Endpoints: []string{"https://127.0.0.1:1"}, CredentialsSecret: "down"},
		}
		kit.Create(ctx, super.Client, secret, store)
		before := store.DeepCopy()
		meta.SetStatusCondition(&store.Status.Conditions, metav1.Condition{
			Type: tenancyv1alpha1.ConditionStoreHealthy, Status: metav1.ConditionFalse,
			Reason: tenancyv1alpha1.ReasonStoreUnreachable, Message: "no member of the store responds",
		})
		Expect(super.Client.Status().Patch(ctx, store, client.MergeFrom(before))).To(Succeed())
		golden("doctor-store-down", doctor(ctx, message("stores")...).Out)

		past, err := authority.Client("vc-host", nil, time.Hour, earlier)
		Expect(err).NotTo(HaveOccurred())
		kit.Edit(ctx, super.Client, secret, func(s *corev1.Secret) {
			s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = past.CertPEM, past.KeyPEM
		})
		golden("doctor-store-expired", doctor(ctx, message("stores")...).Out)
	}, NodeTimeout(6*kit.Soon))
})

// message returns the arguments by which doctor prints a check alone.
func message(check string) []string {
	return []string{`-o=jsonpath={range .checks[?(@.name=="` + check + `")]}{.verdict}: {.message}{"\n"}{.next}{"\n"}{end}`}
}
