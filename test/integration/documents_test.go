package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

// pageTimeout is how long a page may take on a busy machine: each of its blocks
// may create tenants, and calls kubectl.
const pageTimeout = 9 * kit.Soon

// documentsTeam is the namespace of the VirtualClusters in the documents.
const documentsTeam = "team"

// reader does what a page says, in a folder of its own that has what the
// documents name of the project.
type reader struct{ dir string }

func newReader() reader {
	GinkgoHelper()
	r := reader{kit.TempDir()}
	for _, name := range []string{"charts", "config"} {
		Expect(os.Symlink(must(filepath.Abs("../../"+name)), filepath.Join(r.dir, name))).To(Succeed())
	}
	Expect(os.MkdirAll(filepath.Join(r.dir, ".vc"), 0o755)).To(Succeed())
	Expect(os.Symlink(filepath.Join(super.Dir, "super.kubeconfig"), r.kubeconfig("super"))).To(Succeed())
	// kubectl finds the plugin beside itself.
	bin := filepath.Join(r.dir, "bin")
	Expect(os.Mkdir(bin, 0o755)).To(Succeed())
	for name, path := range map[string]string{
		"kubectl": os.Getenv(kubectlBinary), "kubectl-vc": filepath.Join(filepath.Dir(os.Getenv("VC_STANDALONE")), "kubectl-vc"),
	} {
		Expect(os.Symlink(must(filepath.Abs(path)), filepath.Join(bin, name))).To(Succeed())
	}
	return r
}

// kubeconfig returns the file of a tenant, or of the super cluster.
func (r reader) kubeconfig(of string) string { return filepath.Join(r.dir, ".vc", of+".kubeconfig") }

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
		r.run(ctx, block, block.Text, "")
	case strings.HasPrefix(block.Text, "spec:"):
		r.run(ctx, block, "kubectl patch virtualcluster red --namespace team --type merge --patch-file /dev/stdin --dry-run=server", block.Text)
	case strings.Contains(block.Text, "\nkind: VirtualCluster\n"):
		r.run(ctx, block, "kubectl apply --filename -", block.Text)
	default:
		r.run(ctx, block, "kubectl apply --dry-run=server --filename -", block.Text)
	}
}

// run runs a script, which has to succeed.
func (r reader) run(ctx context.Context, block documents.Block, script, input string) {
	GinkgoHelper()
	of := "super"
	if block.Context != "" {
		of = block.Context
	}
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Stdin, command.WaitDelay = r.dir, strings.NewReader(input), time.Second
	command.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig(of), "HOME="+r.dir,
		"PATH="+filepath.Join(r.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s\n%s%s", block, script, input, out)
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
			for _, file := range []string{r.kubeconfig(name), filepath.Join(r.dir, name+".kubeconfig")} {
				Expect(os.RemoveAll(file)).To(Succeed())
			}
		}
	}
}

// isConnected reports whether there is a kubeconfig of a tenant.
func (r reader) isConnected(name string) bool {
	_, err := os.Stat(r.kubeconfig(name))
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
	Expect(os.WriteFile(r.kubeconfig(vc.Name), secret.Data[names.AdminKubeconfigKey], 0o600)).To(Succeed())
	through(ctx, tenant)
	pod := kit.Pod("shop", "web-0")
	kit.Create(ctx, tenant.Client, kit.Namespace("shop"), pod)
	kit.ShouldExist(ctx, super.Client, kit.SuperOf(tenant, pod))
}

var _ = Describe("The documents", Ordered, ContinueOnFailure, func() {
	blocks, err := documents.Read("../..")
	pages, order := map[string][]documents.Block{}, []string{}
	for _, block := range blocks {
		if block.Environment != documents.Cluster || block.IsValues() || block.Language != "sh" && block.Language != "yaml" {
			continue
		}
		if len(pages[block.Page]) == 0 {
			order = append(order, block.Page)
		}
		pages[block.Page] = append(pages[block.Page], block)
	}

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

	for _, page := range order {
		It("do what they say: "+page, func(ctx SpecContext) {
			r := newReader()
			DeferCleanup(func(ctx SpecContext) { r.prepare(ctx, nil) })
			for _, block := range pages[page] {
				r.do(ctx, block)
			}
		}, SpecTimeout(pageTimeout))
	}
})
