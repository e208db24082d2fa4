package integration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/documents"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// kubectlBinary is the environment variable with the path of kubectl.
const kubectlBinary = "VC_KUBECTL"

// documentsTeam is the namespace of the VirtualClusters in the documents.
const documentsTeam = "team"

// reader does what a page says.
type reader struct{ kit.Reader }

func newReader() reader {
	GinkgoHelper()
	return reader{kit.NewReader(super, map[string]string{
		"kubectl": os.Getenv(kubectlBinary), "kubectl-vc": filepath.Join(filepath.Dir(os.Getenv("VC_STANDALONE")), "kubectl-vc"),
	}, map[string]string{"charts": "../../charts", "config": "../../config"})}
}

// do runs a block, after it has prepared the tenants that the block needs.
func (r reader) do(ctx context.Context, block documents.Block) {
	GinkgoHelper()
	tenants := block.Tenants
	if tenants == nil {
		tenants = []string{"red"}
	}
	r.prepare(ctx, tenants)
	By(block.String())
	switch {
	case block.Language == "sh":
		r.Run(ctx, block, block.Text, "")
	case strings.HasPrefix(block.Text, "spec:"):
		r.Run(ctx, block, "kubectl patch virtualcluster red --namespace team --type merge --patch-file /dev/stdin --dry-run=server", block.Text)
	case strings.Contains(block.Text, "\nkind: VirtualCluster\n"):
		r.Run(ctx, block, "kubectl apply --filename -", block.Text)
	default:
		r.Run(ctx, block, "kubectl apply --dry-run=server --filename -", block.Text)
	}
}

// prepare creates the tenants, and deletes others with their files.
func (r reader) prepare(ctx context.Context, tenants []string) {
	GinkgoHelper()
	for _, name := range []string{"red", "blue"} {
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: documentsTeam, Name: name}}
		err := super.Client.Get(ctx, client.ObjectKeyFromObject(vc), vc)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		wanted := slices.Contains(tenants, name)
		switch {
		case wanted && err != nil:
			Expect(super.Client.Create(ctx, vc)).To(Succeed())
			r.connect(ctx, vc)
		case wanted && !r.isConnected(name): // a block has created it
			r.connect(ctx, vc)
		case !wanted && err == nil:
			removeTenant(ctx, vc)
			for _, file := range []string{r.Kubeconfig(name), filepath.Join(r.Dir, name+".kubeconfig")} {
				Expect(os.RemoveAll(file)).To(Succeed())
			}
		}
	}
}

// isConnected reports whether there is a kubeconfig of a tenant.
func (r reader) isConnected(name string) bool {
	_, err := os.Stat(r.Kubeconfig(name))
	return err == nil
}

// connect waits until a tenant is ready, also behind the gateway, writes its
// kubeconfig, and creates the pod of the documents in it.
func (r reader) connect(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) {
	GinkgoHelper()
	Expect(super.WaitReady(ctx, vc)).To(Succeed())
	tenant := must(super.Connect(ctx, vc))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Key(), Name: names.AdminKubeconfigSecret}}
	Expect(kit.Get(ctx, super.Client, secret)).To(Succeed())
	Expect(os.WriteFile(r.Kubeconfig(vc.Name), secret.Data[names.AdminKubeconfigKey], 0o600)).To(Succeed())
	through(ctx, tenant)
	pod := kit.Pod("shop", "web-0")
	kit.Create(ctx, tenant.Client, kit.Namespace("shop"), pod)
	kit.ShouldExist(ctx, super.Client, kit.SuperOf(tenant, pod))
}

var _ = Describe("The documents", Ordered, ContinueOnFailure, func() {
	pages, err := documents.Pages("../..", documents.Cluster)

	BeforeAll(func(ctx SpecContext) {
		Expect(err).NotTo(HaveOccurred())
		if os.Getenv(kubectlBinary) == "" {
			Skip("set " + kubectlBinary + " to the path of kubectl; make test-integration does")
		}
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "example.com/none"}
		for _, object := range []client.Object{kit.Namespace(documentsTeam), class} {
			Expect(super.Client.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, object)).To(Succeed()) })
		}
		useSyncer(account, func(o *app.Options) { o.QuotaValidation = true }) // quotas have no effect without
	})

	for _, page := range pages {
		It("do what they say: "+page.Name, func(ctx SpecContext) {
			r := newReader()
			DeferCleanup(func(ctx SpecContext) { r.prepare(ctx, nil) })
			for _, block := range page.Blocks {
				r.do(ctx, block)
			}
		}, SpecTimeout(kit.Longest))
	}
})
