package installed

import (
	"context"
	"os"
	"os/exec"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/documents"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// team is the namespace of the VirtualClusters in the documents.
const team = "team"

var _ = Describe("The documents of an installation", Ordered, ContinueOnFailure, func() {
	pages, err := documents.Pages("../../..", documents.Nodes, documents.Installation)
	// Pages that need an installation first share it.
	slices.SortStableFunc(pages, func(a, b documents.Page) int {
		return rank(a.Blocks[0]) - rank(b.Blocks[0])
	})
	var r documentReader

	BeforeAll(func(ctx SpecContext) {
		Expect(err).NotTo(HaveOccurred())
		if _, err := exec.LookPath("script"); err != nil {
			Skip("there is no script, of util-linux, which runs commands in a terminal")
		}
		r = newDocumentReader(ctx)
		DeferCleanup(func(ctx SpecContext) {
			purge(ctx)
			Expect(client.IgnoreNotFound(super.Client.Delete(ctx, kit.Namespace(team)))).To(Succeed())
			kit.ShouldVanish(ctx, super.Client, kit.Namespace(team))
		}, NodeTimeout(later))
	})

	for _, page := range pages {
		It("do what they say: "+page.Name, func(ctx SpecContext) {
			for _, block := range page.Blocks {
				By(block.String())
				r.prepare(ctx, block)
				r.Run(ctx, block, block.Text, block.Types+"\n")
			}
		}, SpecTimeout(3*later))
	}
})

// rank orders pages by the environment of their first block.
func rank(b documents.Block) int {
	return slices.Index([]string{documents.Installation, documents.Nodes}, b.Environment)
}

// documentReader does what the documents say, with the chart in a version whose
// images the node has.
type documentReader struct{ kit.Reader }

func newDocumentReader(ctx context.Context) documentReader {
	GinkgoHelper()
	unpacked := kit.TempDir()
	out, err := exec.CommandContext(ctx, "tar", "-xzf", chart(after), "-C", unpacked).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	r := kit.NewReader(super, map[string]string{
		"helm": os.Getenv(kit.HelmBinary), "kubectl": beside("node/kubectl"), "kubectl-vc": beside("kubectl-vc"),
	}, map[string]string{"charts": unpacked, "config": "../../../config"})
	r.Terminal = true
	return documentReader{r}
}

// prepare makes the environment of a block.
func (r documentReader) prepare(ctx context.Context, block documents.Block) {
	GinkgoHelper()
	installed := kit.Get(ctx, super.Client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-manager"}})
	Expect(client.IgnoreNotFound(installed)).To(Succeed())
	switch missing := apierrors.IsNotFound(installed); {
	case block.Environment == documents.Nodes && !missing:
		purge(ctx)
	case block.Environment == documents.Installation:
		if missing {
			purge(ctx) // what a block may have installed of it
			makeNamespace(ctx)
			runHelm(ctx, "install", after)
		}
		r.connect(ctx, block)
	}
}

// connect makes the tenant red, and its kubeconfig if the block uses it.
func (r documentReader) connect(ctx context.Context, block documents.Block) {
	GinkgoHelper()
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "red"}}
	for _, obj := range []client.Object{kit.Namespace(team), vc} {
		Expect(client.IgnoreAlreadyExists(super.Client.Create(ctx, obj))).To(Succeed())
	}
	Expect(super.WaitReady(ctx, vc)).To(Succeed())
	if block.Context == "" {
		return
	}
	address := expose(ctx, "vc-host", intstr.FromString("apiservers"))
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(super.Client.Delete(ctx, outsideOf("vc-host")))).To(Succeed())
	})
	proxy, err := local.NewProxy(address)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(proxy.Close)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}}
	Expect(kit.Get(ctx, super.Client, secret)).To(Succeed())
	kubeconfig, err := proxy.Kubeconfig(secret.Data[names.AdminKubeconfigKey])
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(r.Kubeconfig(vc.Name), kubeconfig, 0o600)).To(Succeed())
}
