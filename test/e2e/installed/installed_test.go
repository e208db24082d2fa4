package installed

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/addons/metricsapi"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// values install all parts.
const values = `
serviceAddresses: {pool: 10.64.0.0/11}
vcSyncer: {podCIDRs: [10.244.0.0/16]}
vnAgent: {enabled: true, tlsSecretName: agent}
vcHost: {agentCASecretName: agent}
vcDNS: {enabled: true}
`

var _ = Describe("An installation", Ordered, func() {
	var (
		red     *local.Tenant
		outside string
		file    string
	)

	It("is ready after helm install, and has a first tenant with a pod", Label(smoke), func(ctx SpecContext) {
		file = filepath.Join(super.Dir, "values.yaml")
		Expect(os.WriteFile(file, []byte(values), 0o600)).To(Succeed())
		makeNamespace(ctx)
		started := time.Now()
		helm.Must(ctx, "install", release, chart(before), "--values", file, "--wait", "--timeout", later.String())
		AddReportEntry("helm install to ready", time.Since(started).String())
		outside = expose(ctx, "vc-host", intstr.FromString("apiservers"))
		started = time.Now()
		red = newTenant(ctx, "red", outside)
		AddReportEntry("first tenant: Ready", time.Since(started).String())
		shouldRun(ctx, red, workload("first", "netexec"))
		AddReportEntry("first tenant: a pod runs", time.Since(started).String())
	}, SpecTimeout(2*later))

	It("serves pods their tenant's API and DNS", func(ctx SpecContext) {
		p := shouldRun(ctx, red, workload("client", "inclusterclient", "--poll-interval=1"))
		logs := func() (string, error) { return logsOf(ctx, red.Config, p) }
		Eventually(logs).WithTimeout(later).Should(ContainSubstring("authz_header="), "the logs, by vn-agent")
		Consistently(logs).ShouldNot(ContainSubstring("status=failed"))
		resolver := workload("resolver", "connect", "--timeout=5s", "kubernetes.default.svc.cluster.local:443")
		resolver.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		kit.Create(ctx, red.Client, resolver)
		Eventually(kit.Read(ctx, red.Client, resolver)).WithTimeout(later).Should(HaveField("Status.Phase", corev1.PodSucceeded))
	}, SpecTimeout(2*later))
})

// makeNamespace makes the namespace of the release, which admits restricted
// pods only, with a certificate for vn-agent.
func makeNamespace(ctx context.Context) {
	GinkgoHelper()
	ns := kit.Namespace(rbac.Namespace)
	ns.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	now := time.Now()
	authority, err := pki.NewAuthority("agents", time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	names := []string{"vn-agent." + rbac.Namespace + ".svc", metricsapi.ServerName}
	pair, err := authority.Server("vn-agent", names, nil, time.Hour, now)
	Expect(err).NotTo(HaveOccurred())
	kit.Create(ctx, super.Client, ns, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "agent"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.CertPEM, corev1.TLSPrivateKeyKey: pair.KeyPEM, "ca.crt": authority.CertPEM},
	})
}

func logsOf(ctx context.Context, config *rest.Config, p *corev1.Pod) (string, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	data, err := c.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	return string(data), err
}
