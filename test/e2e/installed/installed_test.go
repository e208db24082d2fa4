package installed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/addons/metricsapi"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// values install all parts, with a store that survives the restart of a
// member, on a node of two cores.
const values = `
serviceAddresses: {pool: 10.64.0.0/11}
vcSyncer: {podCIDRs: [10.244.0.0/16]}
vnAgent: {enabled: true, tlsSecretName: agent, caSecretName: agent}
vcHost: {endpointDomain: tenants.example.com, ingress: {enabled: true}, resources: {requests: {cpu: 100m}}}
vcStore: {replicas: 3, resources: {requests: {cpu: 50m}}}
vcDNS: {enabled: true, resources: {requests: {cpu: 50m}}}
`

// components are the parts, each of which runs the program of its name, and
// store is the one that runs etcd.
var components = []string{"vc-manager", "vc-syncer", "vc-host", "vn-agent", "vc-dns", store}

const store, storeProgram = "vc-store", "etcd"

var _ = Describe("An installation", Ordered, func() {
	var (
		red     *local.Tenant
		outside string
		first   *corev1.Pod
		kept    types.UID
	)

	It("is ready after helm install, and has a first tenant with a pod", Label(smoke), func(ctx SpecContext) {
		makeNamespace(ctx)
		started := time.Now()
		runHelm(ctx, "install", before)
		AddReportEntry("helm install to ready", time.Since(started).String())
		outside = expose(ctx, "vc-host", intstr.FromString("apiservers"))
		started = time.Now()
		red = newTenant(ctx, "red", outside)
		AddReportEntry("first tenant: Ready", time.Since(started).String())
		first = shouldRun(ctx, red, workload("first", "netexec"))
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

	It("leads kubectl top to vn-agent", func(ctx SpecContext) {
		served := &unstructured.Unstructured{}
		served.SetAPIVersion("apiregistration.k8s.io/v1")
		served.SetKind("APIService")
		served.SetName("v1beta1.metrics.k8s.io")
		Eventually(func() ([]any, error) {
			err := kit.Get(ctx, red.Client, served)
			conditions, _, _ := unstructured.NestedSlice(served.Object, "status", "conditions")
			return conditions, err
		}).WithTimeout(later).Should(ContainElement(And(HaveKeyWithValue("type", "Available"), HaveKeyWithValue("status", "True"))), "%v", served)
	}, SpecTimeout(2*later))

	It("is reached through HAProxy, which passes TLS on by the name of the tenant", func(ctx SpecContext) {
		shouldWorkThroughHAProxy(ctx, red, first, outside)
	}, SpecTimeout(later))

	It("is upgraded while a client that lists ten times a second sees no failure", func(ctx SpecContext) {
		same := []any{}
		members, err := podsOf(ctx, store)
		Expect(err).NotTo(HaveOccurred())
		for _, member := range members {
			same = append(same, HaveField("UID", member.UID))
		}
		listing := kit.StartLister(ctx, clientsOf(red))
		DeferCleanup(listing.Stop)
		started := time.Now()
		runHelm(ctx, "upgrade", after)
		AddReportEntry("helm upgrade", time.Since(started).String())
		listing.Stop()
		AddReportEntry("upgrade: lists, failures, longest gap", []any{listing.Lists(), len(listing.Failures()), listing.Gap().String()})
		shouldHaveImages(ctx, after)
		members, err = podsOf(ctx, store)
		Expect(err).NotTo(HaveOccurred())
		Expect(members).To(ConsistOf(same...), "an upgrade with the same etcd does not restart it")
		shouldBeUntouched(ctx, red, first)
		shouldRun(ctx, red, workload("after-upgrade", "pause"))
		Expect(listing.Failures()).To(BeEmpty())
	}, SpecTimeout(2*later))

	for _, component := range components {
		It("continues when a replica of "+component+" is killed", func(ctx SpecContext) {
			pods, err := podsOf(ctx, component)
			Expect(err).NotTo(HaveOccurred())
			victim, program := pods[0], component
			switch component {
			case "vc-host":
				victim = servedBy(ctx, red)
			case store:
				program = storeProgram
			}
			listing := kit.StartLister(ctx, clientsOf(red))
			DeferCleanup(listing.Stop)
			Eventually(listing.Lists).Should(BeNumerically(">", 3))
			kit.Kill(func() (int, error) { return local.ContainerPID(string(victim.UID), program) })
			before := listing.Lists()
			Eventually(listing.Lists).WithTimeout(later).Should(BeNumerically(">", before+30))
			shouldRun(ctx, red, workload("after-"+component, "pause"))
			listing.Stop()
			AddReportEntry("killed "+component+": failures, longest gap", []any{len(listing.Failures()), listing.Gap().String()})
			shouldBeReady(ctx)
			switch component {
			case "vc-host", store:
				Expect(listing.Gap()).To(BeNumerically("<", 10*time.Second))
			default:
				Expect(listing.Failures()).To(BeEmpty())
			}
		}, SpecTimeout(2*later))
	}

	It("continues when the node is rebooted", func(ctx SpecContext) {
		started := time.Now()
		kit.Kill(super.NodePID)
		shouldServe(ctx, red)
		AddReportEntry("rebooted: the tenant's API", time.Since(started).String())
		shouldRun(ctx, red, workload("after-reboot", "pause"))
		AddReportEntry("rebooted: a new pod runs", time.Since(started).String())
		Eventually(kit.Read(ctx, red.Client, first)).WithTimeout(later).Should(HaveValue(beReady))
		shouldBeReady(ctx)
	}, SpecTimeout(3*later))

	It("is uninstalled without the tenants, their workloads and the CRDs", func(ctx SpecContext) {
		helm.Must(ctx, "uninstall", release)
		for _, component := range components {
			Eventually(podsOf).WithContext(ctx).WithArguments(component).WithTimeout(later).Should(BeEmpty())
		}
		copied := kit.SuperOf(red, first)
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied).To(HaveValue(beReady))
		kept = copied.UID
		Expect(kit.Get(ctx, super.Client, red.VC)).To(Succeed())
		Expect(red.VC.DeletionTimestamp).To(BeNil())
		for _, name := range []string{"virtualclusters", "clusterversions", "controlplanestores", "hostedcontrolplanes", "projectclaims", "projecttemplates"} {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + "." + tenancyv1alpha1.GroupVersion.Group}}
			Expect(kit.Get(ctx, super.Client, crd)).To(Succeed())
		}
	}, SpecTimeout(2*later))

	It("has its tenants again when it is installed again", func(ctx SpecContext) {
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(rbac.ReplicasNamespace))
		kit.ShouldVanish(ctx, super.Client, kit.Namespace(rbac.HostReplicasNamespace))
		runHelm(ctx, "install", after)
		shouldServe(ctx, red) // vc-host is ready before it has its tenants
		shouldRun(ctx, red, workload("after-reinstallation", "pause"))
		copied := kit.SuperOf(red, first)
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		Expect(copied.UID).To(Equal(kept), "it is the pod from before")
	}, SpecTimeout(2*later))

	It("leaves nothing when it is purged", func(ctx SpecContext) {
		purge(ctx)
		namespaces := &corev1.NamespaceList{}
		Expect(super.Client.List(ctx, namespaces)).To(Succeed())
		Expect(namespaces.Items).To(HaveEach(HaveField("Name", Or(Equal("default"), HavePrefix("kube-")))))
		volumes := &corev1.PersistentVolumeList{}
		Eventually(func() ([]corev1.PersistentVolume, error) {
			err := super.Client.List(ctx, volumes)
			return volumes.Items, err
		}).Should(BeEmpty())
	}, SpecTimeout(2*later))
})

// runHelm installs a version with all parts, or upgrades to it.
func runHelm(ctx context.Context, verb, version string) {
	GinkgoHelper()
	file := filepath.Join(super.Dir, "values.yaml")
	Expect(os.WriteFile(file, []byte(valuesOf(version)), 0o600)).To(Succeed())
	helm.Must(ctx, verb, release, chart(version), "--values", file, "--wait", "--timeout", later.String())
}

// valuesOf returns the values in the terms of a version.
func valuesOf(version string) string {
	if version == earlier {
		return strings.NewReplacer(", caSecretName: agent", "", "vcHost: {", "vcHost: {agentCASecretName: agent, ").Replace(values)
	}
	return values
}

// purge deletes the installation with all tenants.
func purge(ctx context.Context) {
	GinkgoHelper()
	// It keeps a namespace with objects of others.
	agent := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "agent"}}
	for _, obj := range []client.Object{outsideOf("vc-host"), agent} {
		Expect(client.IgnoreNotFound(super.Client.Delete(ctx, obj))).To(Succeed())
	}
	command := exec.CommandContext(ctx, beside("kubectl-vc"), "uninstall", "--purge", "--yes")
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(super.Dir, "super.kubeconfig"))
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// beside returns the path of another program that make has built.
func beside(program string) string {
	return filepath.Join(filepath.Dir(os.Getenv(local.Binary)), program)
}

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

// clientsOf returns a client of a tenant that gives up a request in time to
// measure how long requests fail.
func clientsOf(t *local.Tenant) kubernetes.Interface {
	GinkgoHelper()
	config := rest.CopyConfig(t.Config)
	config.Timeout = 2 * time.Second
	c, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// shouldServe waits until the apiserver of a tenant responds.
func shouldServe(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	c := clientsOf(t)
	Eventually(func() error {
		_, err := c.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err
	}).WithTimeout(later).Should(Succeed())
}

func logsOf(ctx context.Context, config *rest.Config, p *corev1.Pod) (string, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	data, err := c.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	return string(data), err
}

// servedBy returns the pod of vc-host that serves a tenant.
func servedBy(ctx context.Context, t *local.Tenant) corev1.Pod {
	GinkgoHelper()
	plane := &tenancyv1alpha1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Key(), Name: tenancyv1alpha1.HostedControlPlaneName},
	}
	Expect(kit.Get(ctx, super.Client, plane)).To(Succeed())
	p := &corev1.Pod{}
	Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: rbac.Namespace, Name: plane.Status.Host}, p)).To(Succeed())
	return *p
}

// shouldHaveImages asserts that all pods have the images of a version.
func shouldHaveImages(ctx context.Context, version string) {
	GinkgoHelper()
	for _, component := range components {
		pods, err := podsOf(ctx, component)
		Expect(err).NotTo(HaveOccurred())
		want := HaveSuffix(component + ":v" + version)
		if component == store {
			want = MatchRegexp(`etcd:3\.\d+\.\d+-\d+$`) // it has versions of its own
		}
		Expect(pods).To(HaveEach(HaveField("Spec.Containers", HaveExactElements(HaveField("Image", want)))), component)
	}
}

// shouldBeUntouched asserts that a pod of a tenant is the same as before, and
// that its container has not been restarted.
func shouldBeUntouched(ctx context.Context, t *local.Tenant, p *corev1.Pod) {
	GinkgoHelper()
	now := p.DeepCopy()
	Expect(kit.Get(ctx, t.Client, now)).To(Succeed())
	Expect(now.UID).To(Equal(p.UID))
	Expect(now.Status.ContainerStatuses).To(HaveExactElements(HaveField("RestartCount", BeZero())))
}

// shouldBeReady waits until all parts are.
func shouldBeReady(ctx context.Context) {
	GinkgoHelper()
	for _, component := range components {
		Eventually(podsOf).WithContext(ctx).WithArguments(component).WithTimeout(later).Should(HaveEach(beReady), component)
	}
}
