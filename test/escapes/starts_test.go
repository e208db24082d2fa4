package escapes

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// hookPatience is how long kube-apiserver waits for the repair of Service
// addresses before it gives up, and some more.
const hookPatience = 75 * time.Second

// starts are what tenants do so that the next start of their kube-apiserver
// does not come to its end: something is missing that it makes before it is
// ready, and it is forbidden to make that.
var starts = []func(context.Context, client.Client){
	func(ctx context.Context, c client.Client) {
		forbid(ctx, c, networkingv1.GroupName, "ipaddresses")
		kubernetes := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}}
		kit.ShouldExist(ctx, c, kubernetes)
		loseForGood(ctx, c, &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: kubernetes.Spec.ClusterIP}})
	},
	func(ctx context.Context, c client.Client) {
		forbid(ctx, c, networkingv1.GroupName, "servicecidrs")
		loseForGood(ctx, c, &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}})
	},
	func(ctx context.Context, c client.Client) {
		forbid(ctx, c, "*", "*")
		loseForGood(ctx, c, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}})
	},
}

var _ = Describe("Starts of hosted control planes", func() {
	attack("control planes whose start hooks fail, which ends a kube-apiserver", "idea: kube-apiserver exits when a start hook fails", func(ctx SpecContext) {
		dir := kit.TempDir()
		own := startAgain(ctx, dir)
		honest, err := own.NewTenant(ctx, kit.VirtualCluster())
		Expect(err).NotTo(HaveOccurred())
		for _, breakNextStart := range starts {
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
	}, SpecTimeout(kit.Longest))
})

// startAgain starts a super cluster with the data of a directory, which ends
// with the spec.
func startAgain(ctx context.Context, dir string) *local.SuperCluster {
	GinkgoHelper()
	own, err := local.Start(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(own.Stop)
	return own
}

// forbid has a tenant's apiserver reject the creation of some resources of a group.
func forbid(ctx context.Context, c client.Client, group string, resources ...string) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "none-of-these"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
	kit.Create(ctx, c, policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	})
}

// loseForGood deletes an object, its finalizers included, until it is not made again.
func loseForGood(ctx context.Context, c client.Client, obj client.Object) {
	GinkgoHelper()
	get := func() error { return c.Get(ctx, client.ObjectKeyFromObject(obj), obj) }
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(client.IgnoreNotFound(c.Delete(ctx, obj))).To(Succeed())
		unprotected := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		g.Expect(client.IgnoreNotFound(c.Patch(ctx, obj, unprotected))).To(Succeed())
		g.Consistently(get).WithTimeout(time.Second).ShouldNot(Succeed(), "it is not made again before the restart")
	}).WithContext(ctx).Should(Succeed())
}
