package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// quotaEnforced returns a function that reads the condition QuotaEnforced of a
// tenant; nil without the condition.
func quotaEnforced(ctx context.Context, t *local.Tenant) func() (*metav1.Condition, error) {
	return func() (*metav1.Condition, error) {
		vc, err := kit.Read(ctx, super.Client, t.VC)()
		return meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionQuotaEnforced), err
	}
}

var _ = Describe("The condition QuotaEnforced", func() {
	It("reports whether a quota is enforced, and the status has no usage otherwise", func(ctx SpecContext) {
		red := tenant(ctx, withQuota(tenancyv1alpha1.Limits{"pods": "3"}))
		enforced := quotaEnforced(ctx, red)
		disabled := And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tenancyv1alpha1.ReasonValidationDisabled))
		off := And(disabled, HaveField("Message", ContainSubstring("without --enable-quota-validation")))
		Eventually(enforced).Should(off)

		useSyncer(account, func(o *app.Options) { o.QuotaValidation = true })
		Eventually(enforced).Should(HaveField("Status", metav1.ConditionTrue))
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 0/3"))

		useSyncer(account, func(o *app.Options) { o.QuotaValidation, o.QuotaValidators = true, []string{"rules"} })
		Eventually(enforced).Should(And(disabled, HaveField("Message", ContainSubstring("leaves out quota"))))
		Eventually(kit.Read(ctx, super.Client, red.VC)).Should(HaveField("Status.Quota", BeNil()))

		useSyncer(account)
		Eventually(enforced).Should(off)
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Quota = nil })
		Eventually(enforced).Should(BeNil())
	}, SpecTimeout(4*kit.Soon))
})
