package escapes

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// elsewhere hosts the control planes of External tenants, as a tenant of this super cluster would be synced twice. It starts with
// the first spec that needs it.
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

// hostileTenant creates a tenant whose apiserver answers what a spec wants. The client of the tenant is that of the real apiserver
// behind it.
func hostileTenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) (*local.Tenant, *local.Hostile) {
	GinkgoHelper()
	there := hostedElsewhere(ctx)
	hostile, err := local.NewHostile(there.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hostile.Close)
	kubeconfig, err := hostile.Kubeconfig()
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: there.VC.Name},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}
	create(ctx, super.Client, secret)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, secret)).To(Succeed()) })
	t := tenant(ctx, append(change, func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
		vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: secret.Name}
	})...)
	t.Client, t.Config = there.Client, there.Config
	return t, hostile
}

// hostedElsewhere creates a control plane that no syncer follows.
func hostedElsewhere(ctx context.Context) *local.Tenant {
	GinkgoHelper()
	startElsewhere(ctx)
	vc := virtualCluster()
	create(ctx, elsewhere.Client, vc)
	DeferCleanup(func(ctx SpecContext) { Expect(elsewhere.Client.Delete(ctx, vc)).To(Succeed()) })
	Eventually(read(ctx, elsewhere.Client, vc)).WithTimeout(2 * soon).Should(
		haveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	Expect(get(ctx, elsewhere.Client, vc)).To(Succeed())
	there, err := elsewhere.Connect(ctx, vc)
	Expect(err).NotTo(HaveOccurred())
	return there
}

// haveCondition matches a VirtualCluster with a condition.
func haveCondition(name string, status metav1.ConditionStatus, reason string) gomegatypes.GomegaMatcher {
	return WithTransform(func(vc *tenancyv1alpha1.VirtualCluster) *metav1.Condition {
		return meta.FindStatusCondition(vc.Status.Conditions, name)
	}, And(Not(BeNil()), HaveField("Status", status), HaveField("Reason", reason)))
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
	p := pod(ns, name, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}}}
	})
	create(ctx, t.Client, c, p)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(t.Client.Delete(ctx, p))).To(Succeed()) })
	shouldExist(ctx, super.Client, superOf(t, p))
}

// countOf is what a counter says now.
func countOf(counter func() (float64, error)) float64 {
	GinkgoHelper()
	count, err := counter()
	Expect(err).NotTo(HaveOccurred())
	return count
}
