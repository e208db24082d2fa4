package integration

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/alias"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// withAlias returns a change that gives a VirtualCluster an alias.
func withAlias(alias string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Alias = alias }
}

// aliasIsFree waits until no VirtualCluster of earlier specs has an alias, also none
// that is being deleted.
func aliasIsFree(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(alias.List).WithContext(ctx).WithArguments(super.Client, name).WithTimeout(recovery).Should(BeEmpty())
}

var _ = Describe("An alias", Ordered, func() {
	const ns = "front"

	aliasHeld := func(ctx SpecContext, t *local.Tenant) func() (string, error) {
		return func() (string, error) {
			vc := t.VC.DeepCopy()
			err := kit.Get(ctx, super.Client, vc)
			if held := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionAliasHeld); held != nil {
				return held.Reason, err
			}
			return "", err
		}
	}

	It("leads to its tenant in each form, and passes to the next holder when that is gone", func(ctx SpecContext) {
		aliasIsFree(ctx, "shop")
		red := tenant(ctx, withAlias("shop"))
		via := through(ctx, red)
		door := kit.DoorOf(via.Config)
		kit.Create(ctx, red.Client, kit.Namespace(ns), configMap(ns, "web", map[string]string{"of": red.Key()}))
		admin := userOf(red, "root", "system:masters")
		const object = "/namespaces/" + ns + "/configmaps/web"
		for form, path := range map[string]string{
			"prefix": "/tenants/shop/api/v1" + object, "full path": "/api/v1/tenants/shop" + object, "query": "/api/v1" + object + "?project=shop",
		} {
			reply := door.Ask(ctx, &admin, path)
			Expect(reply.Code).To(Equal(http.StatusOK), form)
			Expect(reply.Body).To(ContainSubstring(red.Key()), form)
		}
		Expect(door.Ask(ctx, &admin, "/api/v1"+object, "X-Kubernetes-Project", "shop").Code).To(Equal(http.StatusOK))
		Eventually(aliasHeld(ctx, red)).Should(Equal(tenancyv1alpha1.ReasonAliasHeld))

		// No webhook looks here, so that two can have one alias, as in a race. Of two
		// that are created in one second, the UID decides.
		Eventually(func() time.Duration { return time.Since(red.VC.CreationTimestamp.Time) }).Should(BeNumerically(">", time.Second))
		blue := tenant(ctx, withAlias("shop"))
		through(ctx, blue)
		Eventually(aliasHeld(ctx, blue)).Should(Equal(tenancyv1alpha1.ReasonAliasTaken))
		adminOfBlue := userOf(blue, "root", "system:masters")
		Expect(door.Ask(ctx, &adminOfBlue, "/tenants/shop/api").Code).To(Equal(http.StatusForbidden), "the oldest keeps it")
		Expect(door.Ask(ctx, &admin, "/tenants/shop/api").Code).To(Equal(http.StatusOK))
		list := &tenancyv1alpha1.VirtualClusterList{}
		Expect(super.Client.List(ctx, list, client.MatchingFields{"spec.alias": "shop"})).To(Succeed())
		Expect(list.Items).To(HaveLen(2), "VirtualClusters are selected by their alias")

		removeTenant(ctx, red.VC)
		Eventually(aliasHeld(ctx, blue)).Should(Equal(tenancyv1alpha1.ReasonAliasHeld))
		Eventually(func() int { return door.Ask(ctx, &adminOfBlue, "/tenants/shop/api").Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusOK))
	}, SpecTimeout(kit.Longest))
})
