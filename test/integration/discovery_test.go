package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// resources returns the names that `kubectl api-resources` prints.
func (p programs) resources(ctx context.Context, args ...string) ([]string, error) {
	out, err := p.kubectl(ctx, append([]string{"api-resources", "--cached=false", "--output", "name"}, args...)...)
	return strings.Fields(out), err
}

var _ = Describe("The discovery of a tenant", func() {
	const daemonSets = "daemonsets.apps"

	BeforeEach(func() { useSyncer(account) })

	// follows checks that discovery has a shared CRD while the tenant can use it.
	follows := func(ctx context.Context, t *local.Tenant, p programs, kind string) {
		GinkgoHelper()
		d := sharedDefinition(kind, []string{"color"}, []string{"v1"})
		share(ctx, d)
		Expect(p.resources(ctx)).NotTo(ContainElement(d.Name))
		kit.Edit(ctx, super.Client, d, publishedTo(names.AllTenants))
		Eventually(p.resources).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(ContainElement(d.Name))
		createServed(ctx, t, sharedObject(d, "v1", "kept", map[string]any{"color": "red"}))
		kit.Edit(ctx, super.Client, d, publishedTo(""))
		Eventually(sharedCondition(ctx, t)).WithTimeout(2 * kit.Soon).Should(ContainSubstring(d.Name + "/"))
		Eventually(p.resources).WithContext(ctx).WithTimeout(2 * kit.Soon).ShouldNot(ContainElement(d.Name))
	}

	for _, isolation := range []tenancyv1alpha1.Isolation{tenancyv1alpha1.IsolationShared, tenancyv1alpha1.IsolationDedicated} {
		It("shows what it can use: "+string(isolation), func(ctx SpecContext) {
			red := tenant(ctx, kit.WithIsolation(isolation))
			p := programsOf(ctx, red)
			all := must(p.resources(ctx))
			Expect(all).To(ContainElements("pods", "deployments.apps", "customresourcedefinitions.apiextensions.k8s.io"))
			Expect(all).NotTo(ContainElement(ContainSubstring(names.Domain)), "the platform's own APIs")

			By("reading objects of all kinds of which it shows that they can be listed")
			out, err := p.kubectl(ctx, "get", strings.Join(must(p.resources(ctx, "--verbs=list")), ","), "--all-namespaces", "--output=name")
			Expect(err).NotTo(HaveOccurred(), out)

			By("DaemonSets, of which those from before can be read and deleted")
			Expect(all).To(ContainElement(daemonSets))
			Expect(p.resources(ctx, "--verbs=create")).To(And(ContainElement("deployments.apps"), Not(ContainElement(daemonSets))))
			follows(ctx, red, p, "peg"+strings.ToLower(string(isolation)))
			Expect(p.resources(ctx, "--verbs=create")).NotTo(ContainElement(daemonSets), "with CRDs of its own")
			kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Policy.DaemonSets = tenancyv1alpha1.DaemonSetsRun
			})
			Eventually(p.resources).WithContext(ctx).WithArguments("--verbs=create").WithTimeout(2 * kit.Soon).Should(ContainElement(daemonSets))
			kit.Create(ctx, red.Client, kit.Namespace("daemons"))
			Expect(red.Client.Create(ctx, daemonSet("daemons", "agent", nil))).To(Succeed())
		})
	}

	It("is that of the control plane with an External tenant, and follows shared CRDs", func(ctx SpecContext) {
		host := startOtherHost(ctx)
		DeferCleanup(func() { Expect(host.Stop()).To(Succeed()) })
		p := programs{dir: kit.TempDir(), kubeconfig: filepath.Join(host.Dir, "super.kubeconfig")}
		there := &local.Tenant{Client: host.Client, Config: host.Config, VC: virtualCluster()}
		outside := tenantThrough(ctx, there, must(os.ReadFile(p.kubeconfig)))
		Expect(p.resources(ctx, "--verbs=create")).To(ContainElement(daemonSets))
		follows(ctx, outside, p, "pegoutside")
	})
})
