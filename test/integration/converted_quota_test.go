package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// cursing is a validator that rejects objects of one name.
type cursing struct{ plugins.TenantLocks }

func (*cursing) Name() string                          { return "cursing" }
func (*cursing) Kinds() []schema.GroupKind             { return []schema.GroupKind{{Kind: "ConfigMap"}} }
func (c *cursing) Locker(tenant string) plugins.Locker { return c.Of(tenant) }
func (*cursing) registration(c *cursing) plugins.Registration {
	return plugins.Registration{ID: "cursing", InitFn: func(plugins.Environment) (plugins.Validator, error) { return c, nil }}
}

func (*cursing) Validate(_ context.Context, r plugins.Request) error {
	if r.Object.GetName() == "cursed" {
		return &plugins.RejectionError{Reason: "Cursed", Message: "the name is cursed for " + r.Tenant.Name}
	}
	return nil
}

var _ = Describe("The quota of a converted tenant", Ordered, ContinueOnFailure, func() {
	const ns = "default"
	// Allowed objects count for a minute even if they were not written, as when a
	// controller's request fails after that.
	const settled = 90 * time.Second
	var red *local.Tenant
	exceeding := MatchError(SatisfyAll(ContainSubstring("due to exceeding quota limit"), Not(ContainSubstring("tenant-"))))
	// limited returns a converted tenant with a quota that the gateway serves.
	limited := func(ctx context.Context, quota tenancyv1alpha1.QuotaSpec) *local.Tenant {
		GinkgoHelper()
		t := kit.Tenant(ctx, super, kit.VirtualCluster(converted, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Quota = &quota }))
		Eventually(func() error { return t.Client.List(ctx, &corev1.NamespaceList{}) }).Should(Succeed())
		kit.ShouldExist(ctx, t.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}}) // which pods need
		Eventually(kit.Read(ctx, super.Client, t.VC.DeepCopy())).Should(
			kit.HaveCondition(tenancyv1alpha1.ConditionQuotaEnforced, metav1.ConditionTrue, tenancyv1alpha1.ReasonEnforced))
		return t
	}
	// empties deletes the tenant's pods.
	empties := func(ctx context.Context, t *local.Tenant, left string) {
		GinkgoHelper()
		Expect(t.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ns), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(quotaOf(ctx, t)).WithTimeout(settled).Should(Equal(left))
	}

	BeforeAll(func(ctx SpecContext) {
		c := &cursing{}
		useSyncer(account, kit.ConvertedWebhook(ctx, super), func(o *app.Options) { o.Plugins = []plugins.Registration{c.registration(c)} })
		red = limited(ctx, tenancyv1alpha1.QuotaSpec{Hard: tenancyv1alpha1.Limits{"pods": "3"}})
	})

	It("applies across all namespaces and to pods of controllers, and is reported in the tenant's names", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, namespaceOf("a"), namespaceOf("b"))
		kit.Create(ctx, red.Client, kit.Pod("a", "bare"), deployment("b", "web", 4))
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 3/3"))
		Eventually(below(ctx, red)).Should(Equal(3))
		Consistently(below(ctx, red)).Should(Equal(3))
		err := red.Client.Create(ctx, kit.Pod("a", "more"))
		Expect(err).To(MatchError(apierrors.IsForbidden, "Forbidden"))
		Expect(err).To(MatchError(ContainSubstring("cannot create pod due to exceeding quota limit: pods: used 3, asked 1, hard 3")))
		Expect(err.Error()).NotTo(ContainSubstring(red.Key()))
		Eventually(func() (string, error) {
			list := &corev1.EventList{}
			err := red.Client.List(ctx, list, client.InNamespace("b"))
			var messages []string
			for i := range list.Items {
				messages = append(messages, list.Items[i].Message)
			}
			return strings.Join(messages, "\n"), err
		}).Should(SatisfyAll(ContainSubstring("exceeding quota limit: pods: used 3, asked 1, hard 3"), Not(ContainSubstring(red.Key()))))

		Expect(red.Client.Delete(ctx, namespaceOf("a"))).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, namespaceOf("a"))
		limit(ctx, red, tenancyv1alpha1.Limits{"pods": "4"})
		// The ReplicaSet retries after twice the time.
		Eventually(below(ctx, red)).WithTimeout(2*settled).Should(Equal(4), "freed capacity and a higher limit are used")
		Expect(red.Client.Delete(ctx, namespaceOf("b"))).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, namespaceOf("b"))
		Eventually(quotaOf(ctx, red)).WithTimeout(settled).Should(Equal("pods 0/4"))
	})

	It("gives the last slot to one of 20 clients that race for it, again and again", func(ctx SpecContext) {
		limit(ctx, red, tenancyv1alpha1.Limits{"pods": "2"})
		kit.Create(ctx, red.Client, kit.Pod(ns, "stays"))
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 1/2"))
		for round := range atLength(200, 10) {
			errs := kit.AtOnce(20, func(i int) error { return red.Client.Create(ctx, kit.Pod(ns, fmt.Sprintf("racer-%d-%d", round, i))) })
			errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
			Expect(errs).To(And(HaveLen(19), HaveEach(exceeding)))
			list := &corev1.PodList{}
			Expect(red.Client.List(ctx, list, client.InNamespace(ns))).To(Succeed())
			Expect(list.Items).To(HaveLen(2))
			Eventually(quotaOf(ctx, red)).Should(Equal("pods 2/2")) // else the usage below may be that of before the race
			for i := range list.Items {
				if list.Items[i].Name != "stays" {
					Expect(red.Client.Delete(ctx, &list.Items[i], client.GracePeriodSeconds(0))).To(Succeed())
				}
			}
			Eventually(quotaOf(ctx, red)).WithTimeout(settled).Should(Equal("pods 1/2"))
		}
		empties(ctx, red, "pods 0/2")
	})

	It("holds while the syncer is restarted, and nothing is created without it", func(ctx SpecContext) {
		limit(ctx, red, tenancyv1alpha1.Limits{"pods": "5"})
		Eventually(quotaOf(ctx, red)).Should(Equal("pods 0/5"))
		flooding, stop := context.WithCancel(ctx)
		defer stop()
		var created atomic.Int32
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := 0; flooding.Err() == nil; n++ {
					if red.Client.Create(flooding, kit.Pod(ns, fmt.Sprintf("flood-%d-%d", i, n))) == nil {
						created.Add(1)
					}
				}
			})
		}
		Eventually(created.Load).Should(BeNumerically(">", 0))
		for range atLength(5, 2) {
			whileStopped(func() {
				Eventually(func(g Gomega) { // what it has allowed before is created first
					before := created.Load()
					g.Consistently(created.Load).WithTimeout(300 * time.Millisecond).Should(Equal(before))
				}).Should(Succeed())
			})
			Eventually(created.Load).WithTimeout(settled).Should(Equal(int32(5)))
			Expect(below(ctx, red)()).To(Equal(5))
			list := &corev1.PodList{}
			Expect(red.Client.List(ctx, list, client.InNamespace(ns))).To(Succeed())
			for i := range 2 {
				Expect(red.Client.Delete(ctx, &list.Items[i], client.GracePeriodSeconds(0))).To(Succeed())
				created.Add(-1)
			}
		}
		Eventually(created.Load).WithTimeout(settled).Should(Equal(int32(5)))
		Consistently(below(ctx, red)).Should(Equal(5))
		stop()
		all.Wait()
		empties(ctx, red, "pods 0/5")
	})

	It("has as many objects as the limits of its policy and those of the syncer allow", func(ctx SpecContext) {
		green := kit.Tenant(ctx, super, kit.VirtualCluster(converted, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{Limits: map[string]int64{"namespaces": 5, "services": 2, "pods": 1}}
		}))
		Eventually(func() error { return green.Client.Create(ctx, namespaceOf("fifth")) }).Should(Succeed())
		Expect(green.Client.Create(ctx, namespaceOf("sixth"))).To(MatchError(ContainSubstring("no more than 5 namespaces are allowed for this cluster")))
		kit.Create(ctx, green.Client, kit.Pod(ns, "a"))
		Eventually(func() error { return green.Client.Create(ctx, kit.Pod("fifth", "b")) }).Should( // when it has its service account
			MatchError(ContainSubstring("cannot create pod: no more than 1 pods are allowed")))
		many := service(ns, "many")
		many.Spec.Type, many.Spec.Ports = corev1.ServiceTypeNodePort, nil
		for i := range 51 {
			many.Spec.Ports = append(many.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: int32(i + 1)})
		}
		Eventually(func() error { return green.Client.Create(ctx, many.DeepCopy()) }).Should( // when it is given an address that it may have
			MatchError(ContainSubstring("no more than 50 services.nodeports are allowed for this cluster")))
		Expect(green.Client.Delete(ctx, namespaceOf("fifth"))).To(Succeed())
		kit.ShouldVanish(ctx, green.Client, namespaceOf("fifth"))
		Eventually(func() error { return green.Client.Create(ctx, namespaceOf("sixth")) }).Should(Succeed())
	})

	It("has rules and the validators of the program", func(ctx SpecContext) {
		blue := limited(ctx, tenancyv1alpha1.QuotaSpec{
			Hard: tenancyv1alpha1.Limits{"requests.cpu": "1", "services.nodeports": "0"},
			Rules: []tenancyv1alpha1.QuotaRule{{
				Name: "named", Kinds: []tenancyv1alpha1.QuotaKind{"ConfigMap"}, Message: "a ConfigMap has an owner",
				Expression: "has(object.data) && 'owner' in object.data || object.metadata.name == 'kube-root-ca.crt'",
			}},
		})
		Expect(blue.Client.Create(ctx, configMap(ns, "a", nil))).To(MatchError(ContainSubstring("cannot create configmap: a ConfigMap has an owner")))
		good := configMap(ns, "a", map[string]string{"owner": "me"})
		kit.Create(ctx, blue.Client, good)
		good.Data = nil
		Expect(blue.Client.Update(ctx, good)).To(MatchError(ContainSubstring("cannot change configmap: a ConfigMap has an owner")))
		Expect(blue.Client.Create(ctx, configMap(ns, "cursed", map[string]string{"owner": "me"}))).To(
			MatchError(ContainSubstring("the name is cursed for " + blue.VC.Name)))
		Expect(blue.Client.Create(ctx, kit.Pod(ns, "a"))).To(MatchError(ContainSubstring("must declare the limited resources: requests.cpu")))
		dry := client.NewDryRunClient(blue.Client)
		for range 3 {
			Expect(dry.Create(ctx, kit.Pod(ns, "a", needing("1")))).To(Succeed())
		}
		Expect(dry.Create(ctx, kit.Pod(ns, "a", needing("1100m")))).To(exceeding)
		kit.Create(ctx, blue.Client, kit.Pod(ns, "a", needing("600m")))
		Expect(blue.Client.Create(ctx, kit.Pod(ns, "b", needing("600m")))).To(MatchError(ContainSubstring("requests.cpu: used 600m, asked 600m, hard 1")))
		web := service(ns, "web")
		kit.Create(ctx, blue.Client, web)
		web.Spec.Type = corev1.ServiceTypeNodePort
		Expect(blue.Client.Update(ctx, web)).To(MatchError(ContainSubstring("cannot change service due to exceeding quota limit: services.nodeports")))
	})
})
