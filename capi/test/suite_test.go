// Package test runs the Cluster API provider with Cluster API's own controllers
// on real apiservers, as clusterctl would install it.
package test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
	"github.com/virtualcluster/virtualcluster/capi/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// startTimeout bounds the start of all parts.
	startTimeout = 5 * time.Minute
	// coreBinary and clusterctlBinary are the environment variables with the paths
	// of Cluster API's own manager and command.
	coreBinary       = "CAPI_CORE"
	clusterctlBinary = "CLUSTERCTL"
)

// management is a super cluster with Cluster API.
type management struct {
	*local.SuperCluster

	// admin has a scheme with all kinds of Cluster API.
	admin client.Client
}

var (
	// here is the management cluster of the suite.
	here  *management
	admin client.Client
)

func TestClusterAPI(t *testing.T) {
	for _, binary := range []string{coreBinary, clusterctlBinary, local.Binary} {
		if os.Getenv(binary) == "" {
			t.Skipf("set %s; make test-capi does", binary)
		}
	}
	kit.Run(t, "Cluster API")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	kit.NewLogger()
	here = startManagement(ctx, "--nodes=1")
	admin = here.admin
	hooks := newWebhooks()
	here.installCore(ctx)
	here.installWebhooks(ctx, hooks)
	here.startCore(ctx, hooks)
	here.startProviders(ctx)
	here.installClass(ctx, metav1.NamespaceDefault)
}, NodeTimeout(startTimeout))

// startManagement starts a super cluster until the end of the suite or the spec.
func startManagement(ctx context.Context, args ...string) *management {
	GinkgoHelper()
	super, err := local.Start(ctx, kit.TempDir(), args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
	return &management{super, newClient(super)}
}

// kubeconfig returns the file of an admin.
func (m *management) kubeconfig() string { return filepath.Join(m.Dir, "super.kubeconfig") }

// startProviders installs and runs both providers.
func (m *management) startProviders(ctx context.Context) {
	GinkgoHelper()
	for _, p := range []struct {
		provider    app.Provider
		dir, name   string
		clusterType clusterctlv1.ProviderType
	}{
		{app.Infrastructure(), "infrastructure", "vc-capi-infrastructure", clusterctlv1.InfrastructureProviderType},
		{app.ControlPlane(), "control-plane", "vc-capi-control-plane", clusterctlv1.ControlPlaneProviderType},
	} {
		m.install(ctx, components(ctx, p.dir, p.clusterType))
		m.start(ctx, p.provider, p.name)
	}
}

// installClass creates the class of the samples.
func (m *management) installClass(ctx context.Context, namespace string) {
	GinkgoHelper()
	data, err := os.ReadFile("../config/samples/clusterclass-nested.yaml")
	Expect(err).NotTo(HaveOccurred())
	objects := parse(data)
	for i := range objects {
		objects[i].SetNamespace(namespace)
	}
	m.install(ctx, objects)
}

func newClient(super *local.SuperCluster) client.Client {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
		tenancyv1alpha1.AddToScheme, infrav1.AddToScheme, controlplanev1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	c, err := client.New(super.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// components returns what clusterctl would install of a provider, without the
// Deployment: the providers run in this process, with the roles of their service
// accounts.
func components(ctx context.Context, dir string, kind clusterctlv1.ProviderType) []unstructured.Unstructured {
	GinkgoHelper()
	build := exec.CommandContext(ctx, "go", "tool", "kustomize", "build", "../config/"+dir)
	raw, err := build.Output()
	Expect(err).NotTo(HaveOccurred())
	const image = "registry.example.com/vc-capi:v0.1.0"
	reader := config.NewMemoryReader()
	reader.Set("VC_CAPI_IMAGE", image)
	configClient, err := config.New(ctx, "", config.InjectReader(reader))
	Expect(err).NotTo(HaveOccurred())
	parsed, err := repository.NewComponents(repository.ComponentsInput{
		Provider:     config.NewProvider("nested", "", kind),
		ConfigClient: configClient,
		Processor:    yamlprocessor.NewSimpleProcessor(),
		RawYaml:      raw,
		Options:      repository.ComponentsOptions{Version: "v0.1.0"},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(parsed.Images()).To(ConsistOf(image))
	return without(parsed.Objs(), "Deployment")
}

// start runs a provider with the rights of its service account until the end of
// the suite or the spec.
func (m *management) start(ctx context.Context, provider app.Provider, name string) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name + "-system", Name: name}}
	restConfig, err := m.AccountConfig(ctx, account)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- provider.Run(running, restConfig, app.Options{}) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
}

// installCore installs the CRDs of Cluster API, and has clusterctl know them.
func (m *management) installCore(ctx context.Context) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(coreConfig(ctx), "crd/bases/*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		objects := parse(data)
		for i := range objects {
			objects[i].SetLabels(map[string]string{
				clusterctlv1.ClusterctlLabel: "", clusterv1.ProviderNameLabel: "cluster-api", "cluster.x-k8s.io/v1beta2": "v1beta2",
			})
		}
		m.install(ctx, objects)
	}
}

// installWebhooks configures the webhooks of Cluster API's own manager.
func (m *management) installWebhooks(ctx context.Context, hooks webhooks) {
	GinkgoHelper()
	m.install(ctx, hooks.configurations(filepath.Join(coreConfig(ctx), "webhook/manifests.yaml")))
}

// coreConfig returns the folder with the manifests of Cluster API.
func coreConfig(ctx context.Context) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(strings.TrimSpace(string(out)), "core/config")
}

// startCore starts Cluster API's own manager and waits until it is ready.
func (m *management) startCore(ctx context.Context, hooks webhooks) {
	GinkgoHelper()
	core := exec.Command(os.Getenv(coreBinary), "--kubeconfig", m.kubeconfig(),
		"--feature-gates=ClusterTopology=true", "--diagnostics-address=127.0.0.1:0", "--health-addr=127.0.0.1:0",
		"--webhook-port", strconv.Itoa(hooks.port), "--webhook-cert-dir", hooks.dir)
	core.Stderr, core.Stdout = GinkgoWriter, GinkgoWriter
	Expect(core.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(core.Process.Kill()).To(Succeed())
		_ = core.Wait() // killed
	})
	dialer := &net.Dialer{}
	Eventually(func() error {
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(hooks.port)))
		if err != nil {
			return err
		}
		return connection.Close()
	}).WithTimeout(startTimeout).Should(Succeed())
}

// parse reads the objects of a file.
func parse(data []byte) []unstructured.Unstructured {
	GinkgoHelper()
	objects, err := utilyaml.ToUnstructured(data)
	Expect(err).NotTo(HaveOccurred())
	return objects
}

func without(objects []unstructured.Unstructured, kind string) []unstructured.Unstructured {
	var rest []unstructured.Unstructured
	for i := range objects {
		if objects[i].GetKind() != kind {
			rest = append(rest, objects[i])
		}
	}
	return rest
}

// install applies objects, CRDs until they are served.
func (m *management) install(ctx context.Context, objects []unstructured.Unstructured) {
	GinkgoHelper()
	for i := range objects {
		obj := &objects[i]
		Eventually(func() error {
			return m.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("test"), client.ForceOwnership)
		}).WithTimeout(kit.Soon).Should(Succeed(), "apply %s %s", obj.GetKind(), obj.GetName())
	}
	for i := range objects {
		if objects[i].GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: objects[i].GetName()}}
		Eventually(kit.Read(ctx, m.admin, crd)).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue)))))
	}
}
