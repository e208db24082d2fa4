package escapes

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// elsewhere hosts the control planes of External tenants, as a tenant of this
// super cluster would be synced twice. It starts with the first spec that needs
// it.
var elsewhere *local.SuperCluster

var _ = AfterSuite(func() {
	if elsewhere != nil {
		Expect(elsewhere.Stop()).To(Succeed())
		Expect(os.RemoveAll(elsewhere.Dir)).To(Succeed())
	}
})

func startElsewhere(ctx context.Context) {
	GinkgoHelper()
	if elsewhere != nil {
		return
	}
	dir, err := os.MkdirTemp("", "vc-elsewhere-")
	Expect(err).NotTo(HaveOccurred())
	elsewhere, err = local.Start(ctx, dir, "--syncer=false", "--agent=false", "--nodes=0")
	Expect(err).NotTo(HaveOccurred())
}

// hostileTenant creates a tenant whose apiserver answers what a spec wants. The
// client of the tenant is that of the real apiserver behind it.
func hostileTenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) (*local.Tenant, *local.Hostile) {
	GinkgoHelper()
	there := hostedElsewhere(ctx)
	hostile := kit.Hostile(there.Config)
	kubeconfig, err := hostile.Kubeconfig()
	Expect(err).NotTo(HaveOccurred())
	return kit.ExternalTenant(ctx, super, kit.VirtualCluster(change...), there, kubeconfig), hostile
}

// hostedElsewhere creates a control plane that no syncer follows.
func hostedElsewhere(ctx context.Context) *local.Tenant {
	GinkgoHelper()
	startElsewhere(ctx)
	there := kit.ControlPlane(ctx, elsewhere)
	DeferCleanup(func(ctx SpecContext) { Expect(elsewhere.Client.Delete(ctx, there.VC)).To(Succeed()) })
	return there
}

// answering adds a rule to a hostile apiserver for the rest of a spec.
func answering(hostile *local.Hostile, match local.Match, answer local.Answer) {
	DeferCleanup(hostile.On(match, answer))
}

// rejected counts what the syncer did not take from tenants' apiservers.
func rejected(reason string) func() (float64, error) {
	return func() (float64, error) {
		return syncer.Metric("vc_syncer_tenant_objects_rejected_total", map[string]string{"reason": reason})
	}
}

// shouldSync asserts that a tenant's new objects are synced down.
func shouldSync(ctx context.Context, t *local.Tenant, ns, name string) {
	GinkgoHelper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	p := kit.Pod(ns, name, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}}}
	})
	kit.Create(ctx, t.Client, c, p)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(t.Client.Delete(ctx, p))).To(Succeed()) })
	kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, p))
}

// countOf is what a counter says now.
func countOf(counter func() (float64, error)) float64 {
	GinkgoHelper()
	count, err := counter()
	Expect(err).NotTo(HaveOccurred())
	return count
}
