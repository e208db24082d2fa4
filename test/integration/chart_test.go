package integration

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/config/webhook"
	"github.com/virtualcluster/virtualcluster/controllers/admission"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// managerBinary is the environment variable with the path of vc-manager.
	managerBinary = "VC_MANAGER"
	chartDir      = "../../charts/virtualcluster"
)

// helmed is a super cluster into which Helm installs the chart.
type helmed struct {
	*local.SuperCluster
	kit.Helm
}

// newHelmed starts a super cluster for a container of specs, in which nothing of
// VirtualCluster is installed.
func newHelmed(ctx context.Context) helmed {
	GinkgoHelper()
	if os.Getenv(kit.HelmBinary) == "" {
		Skip("set " + kit.HelmBinary + " to the path of Helm; make test-integration does")
	}
	started, err := local.Start(ctx, kit.TempDir(), "--bare", "--nodes=1")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(started.Stop()).To(Succeed()) })
	return helmed{started, kit.NewHelm(started, rbac.Namespace)}
}

// deployed returns the names of the Deployments of the release.
func (h helmed) deployed(ctx context.Context) func() ([]string, error) {
	return func() (names []string, err error) {
		list := &appsv1.DeploymentList{}
		err = h.Client.List(ctx, list, client.InNamespace(rbac.Namespace))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, err
	}
}

// start starts the program of a Deployment with the arguments that the chart
// gives it and the permissions of its service account, and stops it at the end
// of the spec. Further arguments replace addresses of the pod.
func (h helmed) start(ctx context.Context, name, binary string, args ...string) {
	GinkgoHelper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name}}
	Expect(kit.Get(ctx, h.Client, deployment)).To(Succeed())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: rbac.Namespace, Name: deployment.Spec.Template.Spec.ServiceAccountName,
	}}
	config, err := h.AccountConfig(ctx, account)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(h.Dir, name+".kubeconfig")
	Expect(local.WriteKubeconfig(kubeconfig, config)).To(Succeed())
	args = slices.Concat(deployment.Spec.Template.Spec.Containers[0].Args, []string{"--kubeconfig=" + kubeconfig}, args)
	program, err := gexec.Start(exec.Command(binary, args...), GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { program.Terminate().Wait(kit.Soon) })
}

// everything are values that install all that is optional and needs no other
// project's CRDs.
const everything = `
serviceAddresses: {pool: 10.64.0.0/11, secondaryPool: "fd00:64::/107"}
vcSyncer:
  podCIDRs: [10.244.0.0/16]
  networks:
    enabled: true
    internalCIDRs: [192.168.0.0/16]
    defaultTemplate: '{"metadata": {"name": "main"}, "spec": {"type": "flat"}}'
  extraArgs: [--workers=8]
vnAgent: {enabled: true, tlsSecretName: agent}
vcDNS: {enabled: true}
`

var _ = Describe("The Helm chart", Ordered, Label("chart"), func() {
	var (
		super  helmed
		tenant *tenancyv1alpha1.VirtualCluster
	)

	BeforeAll(func(ctx SpecContext) {
		super = newHelmed(ctx)
	})

	It("is installed with its default values", func(ctx SpecContext) {
		super.Must(ctx, "install", "virtualcluster", chartDir, "--create-namespace")
		Expect(super.deployed(ctx)()).To(ConsistOf("vc-manager", "vc-syncer", "vc-host"))
		tenant = virtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
			vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: "elsewhere"}
		})
		Eventually(super.Client.Create).WithContext(ctx).WithArguments(tenant).Should(Succeed(), "the CRDs are served")
	}, SpecTimeout(kit.Soon*6))

	It("has pods that Pod Security admits at the level restricted", func(ctx SpecContext) {
		kit.Edit(ctx, super.Client, kit.Namespace(rbac.Namespace), func(ns *corev1.Namespace) {
			ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
		})
		deployments := &appsv1.DeploymentList{}
		Expect(super.Client.List(ctx, deployments, client.InNamespace(rbac.Namespace))).To(Succeed())
		for i := range deployments.Items {
			template := deployments.Items[i].Spec.Template
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			pod.Namespace, pod.Name = rbac.Namespace, deployments.Items[i].Name
			Expect(super.Client.Create(ctx, pod, client.DryRunAll)).To(Succeed())
		}
	})

	It("is upgraded to values that install everything, and keeps what others have written", func(ctx SpecContext) {
		authorities := []byte("authorities of vc-manager")
		configuration, err := webhook.Configuration()
		Expect(err).NotTo(HaveOccurred())
		Expect(configuration.Name).To(Equal(admission.ConfigurationName))
		edit := func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.CABundle = authorities
		}
		was := configuration.DeepCopy()
		Expect(kit.Get(ctx, super.Client, was)).To(Succeed())
		configuration = was.DeepCopy()
		edit(configuration)
		Expect(super.Client.Patch(ctx, configuration, client.MergeFrom(was), client.FieldOwner("vc-manager"))).To(Succeed())

		file := filepath.Join(super.Dir, "values.yaml")
		Expect(os.WriteFile(file, []byte(everything), 0o600)).To(Succeed())
		super.Must(ctx, "upgrade", "virtualcluster", chartDir, "--values", file)
		Expect(super.deployed(ctx)()).To(ConsistOf("vc-manager", "vc-syncer", "vc-host", "vn-agent", "vc-dns"))
		Expect(kit.Get(ctx, super.Client, configuration)).To(Succeed())
		Expect(configuration.Webhooks[0].ClientConfig.CABundle).To(Equal(authorities))

		pool := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "virtualcluster-tenants"}}
		Expect(kit.Read(ctx, super.Client, pool)()).To(HaveField("Spec.CIDRs", []string{"10.64.0.0/11", "fd00:64::/107"}))

		super.Must(ctx, "upgrade", "virtualcluster", chartDir, "--reset-values")
		Expect(super.deployed(ctx)()).To(ConsistOf("vc-manager", "vc-syncer", "vc-host"))
	}, SpecTimeout(kit.Soon*6))

	It("gives vc-manager and vc-syncer what they need to sync an External tenant with networks", func(ctx SpecContext) {
		super.Must(ctx, "upgrade", "virtualcluster", chartDir, "--set", "vcSyncer.networks.enabled=true")
		host := startOtherHost(ctx)
		DeferCleanup(func() { Expect(host.Stop()).To(Succeed()) })
		there := kit.ControlPlane(ctx, host)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: there.Key(), Name: names.AdminKubeconfigSecret}}
		Expect(kit.Get(ctx, host.Client, secret)).To(Succeed())

		probes := map[string]string{"vc-syncer": kit.FreeAddress(ctx)}
		for _, replica := range []string{"the leader", "the one that stands by"} {
			probes[replica] = kit.FreeAddress(ctx)
			webhookPort := strconv.Itoa(int(netip.MustParseAddrPort(kit.FreeAddress(ctx)).Port()))
			super.start(ctx, "vc-manager", os.Getenv(managerBinary), "--metrics-bind-address=127.0.0.1:0",
				"--health-probe-bind-address="+probes[replica], "--webhook-port="+webhookPort)
		}
		super.start(ctx, "vc-syncer", os.Getenv(local.SyncerBinary), "--metrics-bind-address=127.0.0.1:0",
			"--health-probe-bind-address="+probes["vc-syncer"])
		for _, address := range probes {
			Eventually(kit.Probed(ctx, address, "/readyz")).Should(Equal(http.StatusOK))
		}
		for _, name := range []string{"vc-store-members", "vc-store-client"} {
			kit.ShouldExist(ctx, super.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name}})
		}
		kit.ShouldExist(ctx, super.Client, &tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		t := kit.ExternalTenant(ctx, super.SuperCluster, kit.VirtualCluster(), there, secret.Data[names.AdminKubeconfigKey])
		pod := kit.Pod(metav1.NamespaceDefault, "web")
		kit.Create(ctx, t.Client, pod)
		Eventually(kit.Read(ctx, t.Client, network("default", ""))).Should(isReady())
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(t, pod))).Should(copiedTo(t, "default"))
		Eventually(kit.Read(ctx, t.Client, pod)).Should(HaveField("Status.Phase", corev1.PodRunning))
	}, SpecTimeout(kit.Soon*6))

	It("refuses another number of members of the store", func(ctx SpecContext) {
		out, err := super.Run(ctx, "upgrade", "virtualcluster", chartDir, "--set", "vcStore.replicas=3")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("this number cannot be changed"))
	}, SpecTimeout(kit.Soon*6))

	It("refuses values that it does not have", func(ctx SpecContext) {
		out, err := super.Run(ctx, "upgrade", "virtualcluster", chartDir, "--set", "vcManger.replicas=3")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("vcManger"))
	})

	It("is uninstalled without the CRDs and the tenants, and installed again", func(ctx SpecContext) {
		super.Must(ctx, "uninstall", "virtualcluster")
		Eventually(super.deployed(ctx)).Should(BeEmpty())
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(rbac.ReplicasNamespace))
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(rbac.HostReplicasNamespace))
		was := tenant.DeepCopy()
		Expect(kit.Get(ctx, super.Client, tenant)).To(Succeed())
		Expect(tenant.UID).To(Equal(was.UID))
		Expect(tenant.DeletionTimestamp).To(BeNil())

		super.Must(ctx, "install", "virtualcluster", chartDir)
		Expect(super.deployed(ctx)()).To(ConsistOf("vc-manager", "vc-syncer", "vc-host"))
	}, SpecTimeout(kit.Soon*6))
})
