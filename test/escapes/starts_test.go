package escapes

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// hookPatience is how long kube-apiserver waits for the repair of Service addresses before it gives up, and some more.
const hookPatience = 75 * time.Second

var _ = Describe("Starts of hosted control planes", func() {
	attack("control planes whose start hooks fail, which ends a kube-apiserver", "idea: kube-apiserver exits when a start hook fails", func(ctx SpecContext) {
		dir := kit.TempDir()
		own := startAgain(ctx, dir)
		honest, err := own.NewTenant(ctx, kit.VirtualCluster())
		Expect(err).NotTo(HaveOccurred())
		for range 3 {
			hostile, err := own.NewTenant(ctx, kit.VirtualCluster())
			Expect(err).NotTo(HaveOccurred())
			breakNextStart(ctx, hostile.Client)
		}
		Expect(own.Stop()).To(Succeed())

		own = startAgain(ctx, dir)
		begin := time.Now()
		lives := func(g Gomega, ctx context.Context) {
			again, err := own.Connect(ctx, honest.VC)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Client.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})).To(Succeed())
		}
		Eventually(lives).WithContext(ctx).Should(Succeed())
		GinkgoWriter.Printf("the honest tenant is served again after %s\n", time.Since(begin).Round(time.Millisecond))
		Consistently(lives).WithContext(ctx).WithTimeout(hookPatience).WithPolling(time.Second).Should(Succeed())
	}, SpecTimeout(3*time.Minute))
})

// startAgain starts a super cluster with the data of a directory, which ends with the spec.
func startAgain(ctx context.Context, dir string) *local.SuperCluster {
	GinkgoHelper()
	own, err := local.Start(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(own.Stop)
	return own
}

// breakNextStart has a tenant's kube-apiserver not repair what it has to repair before it is ready: it forbids itself to write the
// addresses of Services, and one is missing.
func breakNextStart(ctx context.Context, c client.Client) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-addresses"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{networkingv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"ipaddresses"},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
	Expect(c.Create(ctx, policy)).To(Succeed())
	Expect(c.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})).To(Succeed())
	kubernetes := &corev1.Service{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, kubernetes)).To(Succeed())
	address := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: kubernetes.Spec.ClusterIP}}
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(client.IgnoreNotFound(c.Delete(ctx, address))).To(Succeed())
		g.Consistently(func() error { return c.Get(ctx, client.ObjectKeyFromObject(address), address) }).
			WithTimeout(time.Second).ShouldNot(Succeed(), "the address is not repaired before the restart")
	}).WithContext(ctx).Should(Succeed())
}
