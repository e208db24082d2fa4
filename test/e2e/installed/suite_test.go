// Package installed holds the tests of an installation by Helm: an ordinary
// cluster with a real node, into which the chart is installed, and tenants
// whose pods run there.
package installed

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// imagesDir is the environment variable with the directory of the image
	// archives of the project, in both versions.
	imagesDir = "VC_IMAGES"
	chartDir  = "../../../charts/virtualcluster"
	// release is the name of the release, and before and after its versions.
	release, before, after = "virtualcluster", "0.0.1", "0.0.2"
	// later bounds what starts several pods, or all of them.
	later = 5 * time.Minute
	// smoke labels the specs that are run for every change.
	smoke = "smoke"
	// agnhost is the image of tenants' pods.
	agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
)

var (
	super *local.SuperCluster
	helm  kit.Helm
	// charts is the directory of the packaged charts.
	charts string
)

func TestInstalled(t *testing.T) { kit.Run(t, "Installed") }

var _ = BeforeSuite(func(ctx SpecContext) {
	for _, name := range []string{kit.HelmBinary, imagesDir} {
		if os.Getenv(name) == "" {
			Skip("set " + name + "; make e2e does")
		}
	}
	dir, err := os.MkdirTemp("", "vc-e2e-")
	Expect(err).NotTo(HaveOccurred())
	super, err = local.Start(ctx, dir, "--bare", "--nodes", "real", "--node-images", os.Getenv(imagesDir))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(super.Stop()).To(Succeed())
		Expect(os.RemoveAll(dir)).To(Succeed(), "and nothing is mounted in it")
	})
	// An API that is not available stops a purge, and that of metrics-server is the last.
	apis, err := discovery.NewDiscoveryClientForConfig(super.Config)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { _, _, err := apis.ServerGroupsAndResources(); return err }).WithTimeout(later).Should(Succeed())
	helm = kit.NewHelm(super, rbac.Namespace)
	charts = filepath.Join(dir, "charts")
	for _, version := range []string{before, after} {
		helm.Must(ctx, "package", chartDir, "--destination", charts, "--version", version, "--app-version", "v"+version)
	}
}, NodeTimeout(later))

// chart returns the package of a version.
func chart(version string) string { return filepath.Join(charts, release+"-"+version+".tgz") }

// expose makes a Service of type NodePort with the pods of another one, and
// returns its address, once kube-proxy leads there: Services have no addresses
// outside of the node.
func expose(ctx context.Context, name string, port intstr.IntOrString) string {
	GinkgoHelper()
	outside := outsideOf(name)
	outside.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app.kubernetes.io/name": name},
		Ports: []corev1.ServicePort{{Port: 443, TargetPort: port}},
	}
	kit.Create(ctx, super.Client, outside)
	nodes := &corev1.NodeList{}
	Expect(super.Client.List(ctx, nodes)).To(Succeed())
	Expect(nodes.Items).To(HaveLen(1))
	address := net.JoinHostPort(nodes.Items[0].Status.Addresses[0].Address, strconv.Itoa(int(outside.Spec.Ports[0].NodePort)))
	Eventually(func() error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}).WithTimeout(later).Should(Succeed())
	return address
}

func outsideOf(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name + "-outside"}}
}

// newTenant creates a tenant, and connects to it by the address of vc-host
// outside of the cluster.
func newTenant(ctx context.Context, name, address string) *local.Tenant {
	GinkgoHelper()
	t, err := super.NewTenant(ctx, &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	Expect(err).NotTo(HaveOccurred())
	t.Config = through(t.Config, address)
	t.Client, err = local.NewClient(t.Config)
	Expect(err).NotTo(HaveOccurred())
	return t
}

// through returns a configuration with which clients connect to another
// address than the one in its URL.
func through(config *rest.Config, address string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, address)
	}
	return config
}

// workload returns a pod that runs agnhost.
func workload(name string, args ...string) *corev1.Pod {
	return kit.Pod(metav1.NamespaceDefault, name, func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = new(int64(1))
		p.Spec.Containers[0].Image, p.Spec.Containers[0].Args = agnhost, args
	})
}

// shouldRun creates a pod of a tenant, and waits until it is ready.
func shouldRun(ctx context.Context, t *local.Tenant, p *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	kit.Create(ctx, t.Client, p)
	Eventually(kit.Read(ctx, t.Client, p)).WithTimeout(later).Should(HaveValue(beReady))
	Expect(kit.Get(ctx, t.Client, p)).To(Succeed())
	return p
}

// beReady succeeds for a pod that is ready.
var beReady = WithTransform(func(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}, BeTrue())

// podsOf returns the pods of a component that are to stay.
func podsOf(ctx context.Context, component string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := super.Client.List(ctx, pods, client.InNamespace(rbac.Namespace), client.MatchingLabels{"app.kubernetes.io/name": component})
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
}
