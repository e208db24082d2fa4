package routes

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// imagesDir is the environment variable with the directory of Traefik's
	// image archive.
	imagesDir = "VC_TRAEFIK_IMAGES"
	// later bounds what starts containers, on a machine that is busy, and what
	// the syncer does at its next patrol.
	later = 3 * time.Minute
)

// alsoWatched are kinds without which Traefik does not start.
var alsoWatched = kit.Upstream{RequiredBy: "test/operators", Module: "sigs.k8s.io/gateway-api", Files: "config/crd/standard/*_[br]*s.yaml"}

var (
	super *local.SuperCluster
	// edge is the address of the Gateway outside of the cluster.
	edge string
)

func TestRoutes(t *testing.T) { kit.Run(t, "Routes") }

var _ = BeforeSuite(func(ctx SpecContext) {
	if os.Getenv(imagesDir) == "" {
		Skip("set " + imagesDir + "; make e2e does")
	}
	dir, err := os.MkdirTemp("", "vc-e2e-")
	Expect(err).NotTo(HaveOccurred())
	super, err = local.Start(ctx, dir, "--nodes", "real", "--node-images", os.Getenv(imagesDir))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(super.Stop()).To(Succeed())
		Expect(os.RemoveAll(dir)).To(Succeed(), "and nothing is mounted in it")
	})
	kit.InstallGateways(ctx, super)
	for _, d := range alsoWatched.Definitions(ctx) {
		kit.Create(ctx, super.Client, d)
	}
	apply(ctx, filepath.Join("testdata", "traefik.yaml"))
	traefik := kit.Pod(kit.Edge, "traefik")
	Eventually(kit.Read(ctx, super.Client, traefik)).WithTimeout(later).Should(beReady)
	edge = addressOf(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: kit.Edge, Name: "traefik"}})
}, NodeTimeout(2*later))

// apply applies a manifest to the super cluster.
func apply(ctx context.Context, file string) {
	GinkgoHelper()
	kubectl := filepath.Join(filepath.Dir(os.Getenv(local.Binary)), "node", "kubectl")
	out, err := exec.CommandContext(ctx, kubectl, "--kubeconfig", filepath.Join(super.Dir, "super.kubeconfig"), "apply", "-f", file).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// addressOf returns the address at the node of the only port of a Service.
func addressOf(ctx context.Context, of *corev1.Service) string {
	GinkgoHelper()
	Expect(kit.Get(ctx, super.Client, of)).To(Succeed())
	nodes := &corev1.NodeList{}
	Expect(super.Client.List(ctx, nodes)).To(Succeed())
	Expect(nodes.Items).To(HaveLen(1))
	return net.JoinHostPort(nodes.Items[0].Status.Addresses[0].Address, strconv.Itoa(int(of.Spec.Ports[0].NodePort)))
}

// newTenant creates a tenant that may have the hosts that no other has.
func newTenant(ctx context.Context, isolation tenancyv1alpha1.Isolation) *local.Tenant {
	GinkgoHelper()
	return kit.Tenant(ctx, super, kit.VirtualCluster(kit.WithRoutes("HTTPRoute"), kit.WithIsolation(isolation)))
}

// beReady succeeds for a pod that is ready.
var beReady = WithTransform(func(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}, BeTrue())
