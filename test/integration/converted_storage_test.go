package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("What a converted tenant stores", Ordered, ContinueOnFailure, func() {
	const ns = "default"
	// limited returns a converted tenant with limits that the gateway serves.
	limited := func(ctx context.Context, limits tenancyv1alpha1.ControlPlaneLimits, change ...func(*tenancyv1alpha1.VirtualCluster)) *local.Tenant {
		GinkgoHelper()
		change = append(change, converted, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Limits: &limits}
		})
		t := kit.Tenant(ctx, super, kit.VirtualCluster(change...))
		Eventually(func() error { return t.Client.List(ctx, &corev1.NamespaceList{}) }).Should(Succeed())
		Eventually(func() error { return client.NewDryRunClient(t.Client).Create(ctx, configMap(ns, "probe", nil)) }).
			WithTimeout(time.Minute).Should(Succeed(), "the webhook answers")
		// Controllers make these in each namespace, whatever the limits are.
		for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
			kit.ShouldExist(ctx, t.Client, configMap(namespace, "kube-root-ca.crt", nil))
			kit.ShouldExist(ctx, t.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
		}
		return t
	}
	tooMany := SatisfyAll(MatchError(apierrors.IsForbidden, "Forbidden"), MatchError(ContainSubstring("no more than 100 are allowed: delete some")))

	BeforeAll(func(ctx SpecContext) { useSyncer(account, kit.ConvertedWebhook(ctx, super)) })

	It("is limited in number, over all kinds, by clients that race", func(ctx SpecContext) {
		t := limited(ctx, tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(100))})
		racing := client.MatchingLabels{"app": "racing"}
		errs := kit.AtOnce(160, func(i int) error {
			meta := metav1.ObjectMeta{Name: fmt.Sprintf("o-%d", i), Labels: racing}
			if i%2 == 0 {
				return t.Client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta})
			}
			meta.Namespace = ns
			return t.Client.Create(ctx, &rbacv1.Role{ObjectMeta: meta})
		})
		Expect(errs).To(HaveEach(Or(BeNil(), And(tooMany, Not(MatchError(ContainSubstring(t.Key())))))))
		objects, _ := kit.Stored(ctx, super, t.Key())
		Expect(objects).To(And(BeNumerically(">", 90), BeNumerically("<=", 100)))
		Expect(t.Client.Create(ctx, configMap(ns, "more", nil))).To(tooMany)
		Expect(client.NewDryRunClient(t.Client).Create(ctx, configMap(ns, "more", nil))).To(tooMany)

		// One of the kinds may have won the race.
		Expect(t.Client.DeleteAllOf(ctx, &rbacv1.Role{}, client.InNamespace(ns), racing)).To(Succeed(), "deletions pass")
		Expect(t.Client.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, racing)).To(Succeed(), "deletions pass")
		Eventually(func() error { return t.Client.Create(ctx, configMap(ns, "more", nil)) }).Should(Succeed())
	})

	It("does not count what a quota rejects, and no quota counts what it rejects", func(ctx SpecContext) {
		t := limited(ctx, tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(100))}, withQuota(tenancyv1alpha1.Limits{"pods": "2"}))
		createPods := func(n int) []error {
			return kit.AtOnce(n, func(int) error {
				return t.Client.Create(ctx, kit.Pod(ns, names.SimpleNameGenerator.GenerateName("p-")))
			})
		}
		Eventually(func() error { return createPods(1)[0] }).Should(Succeed())
		Expect(createPods(120)).To(ContainElements(slices.Repeat([]any{MatchError(ContainSubstring("due to exceeding quota limit"))}, 119)))
		Expect(t.Client.Create(ctx, configMap(ns, "more", nil))).To(Succeed())

		Expect(t.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ns), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(func() (err error) {
			for err == nil {
				err = t.Client.Create(ctx, configMap(ns, names.SimpleNameGenerator.GenerateName("fill-"), nil))
			}
			return err
		}).Should(tooMany)
		Expect(createPods(4)).To(HaveEach(tooMany))
		Expect(t.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns))).To(Succeed())
		Eventually(func() error { return createPods(1)[0] }).Should(Succeed())
	})

	It("is limited in bytes, and can always be made smaller", func(ctx SpecContext) {
		t := limited(ctx, tenancyv1alpha1.ControlPlaneLimits{Storage: new(resource.MustParse("1Mi"))})
		large := map[string]string{"a": strings.Repeat("x", 600<<10)}
		tooLarge := SatisfyAll(MatchError(apierrors.IsForbidden, "Forbidden"), MatchError(ContainSubstring("no more than 1MiB are allowed: delete some")))
		first, second := configMap(ns, "first", large), configMap(ns, "second", nil)
		kit.Create(ctx, t.Client, first, second)
		second.Data = large
		Expect(t.Client.Update(ctx, second)).To(tooLarge)
		Expect(t.Client.Patch(ctx, configMap(ns, "second", nil), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"a":"`+strings.Repeat("x", 200<<10)+`"}},"data":{"b":"`+strings.Repeat("x", 300<<10)+`"}}`)))).To(tooLarge)
		first.Data = nil
		Expect(t.Client.Update(ctx, first)).To(Succeed())
		Eventually(func() error {
			current := configMap(ns, "second", nil)
			if err := kit.Get(ctx, t.Client, current); err != nil {
				return err
			}
			current.Data = large
			return t.Client.Update(ctx, current)
		}).Should(Succeed())
		Expect(t.Client.Delete(ctx, second)).To(Succeed())
		Eventually(func() error { return t.Client.Create(ctx, configMap(ns, "third", large)) }).Should(Succeed())
	})

	It("is reported in a condition", func(ctx SpecContext) {
		t := limited(ctx, tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(5000))})
		shouldReport := func(status metav1.ConditionStatus, reason string) {
			GinkgoHelper()
			Eventually(kit.Read(ctx, super.Client, t.VC.DeepCopy())).Should(kit.HaveCondition(tenancyv1alpha1.ConditionWithinLimits, status, reason))
		}
		most := func(objects int64) {
			GinkgoHelper()
			kit.Edit(ctx, super.Client, t.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ControlPlane.Limits.Objects = &objects })
		}
		shouldReport(metav1.ConditionTrue, tenancyv1alpha1.ReasonWithinLimits)
		Expect(kit.AtOnce(100, func(i int) error { return t.Client.Create(ctx, configMap(ns, fmt.Sprintf("c-%d", i), nil)) })).To(HaveEach(BeNil()))
		most(100)
		shouldReport(metav1.ConditionFalse, tenancyv1alpha1.ReasonStorageLimitReached)
		most(5000)
		shouldReport(metav1.ConditionTrue, tenancyv1alpha1.ReasonWithinLimits)
		kit.Edit(ctx, super.Client, t.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane.Limits.Storage = new(resource.MustParse("1Mi"))
		})
		large := map[string]string{"a": strings.Repeat("x", 1023<<10)}
		Eventually(func() error { return client.NewDryRunClient(t.Client).Create(ctx, configMap(ns, "large", large)) }).
			Should(MatchError(apierrors.IsForbidden, "Forbidden"))
		shouldReport(metav1.ConditionFalse, tenancyv1alpha1.ReasonStorageLimitReached)
	})

	It("has CRDs and custom resources, with and without namespaces", func(ctx SpecContext) {
		t := limited(ctx, tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(100))})
		definitions := []*apiextensionsv1.CustomResourceDefinition{
			definition(gears), definition(levers, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.ClusterScoped }),
		}
		kit.Create(ctx, t.Client, definitions[0], definitions[1])
		create := func(d *apiextensionsv1.CustomResourceDefinition, n int) error {
			object := &unstructured.Unstructured{}
			object.SetAPIVersion(platform + "/v1")
			object.SetKind(d.Spec.Names.Kind)
			object.SetName(fmt.Sprintf("o-%d", n))
			if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
				object.SetNamespace(ns)
			}
			return t.Client.Create(ctx, object)
		}
		var rejected error
		for _, d := range definitions {
			// The policies of the super cluster know a new type after half a minute.
			Eventually(create).WithArguments(d, 0).WithTimeout(2 * time.Minute).Should(Succeed())
		}
		for n := 1; n < 60 && rejected == nil; n++ {
			for _, d := range definitions {
				if rejected = create(d, n); rejected != nil {
					break
				}
			}
		}
		Expect(rejected).To(tooMany)
		Expect(t.Client.Delete(ctx, definitions[0])).To(Succeed())
		Eventually(func() error { return t.Client.Create(ctx, configMap(ns, "more", nil)) }).Should(Succeed())
		kit.Edit(ctx, super.Client, t.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ControlPlane.Limits.Objects = new(int64(5000)) })
		Eventually(func() error {
			for i := range 100 {
				if err := client.IgnoreAlreadyExists(t.Client.Create(ctx, configMap(ns, fmt.Sprintf("c-%d", i), nil))); err != nil {
					return err
				}
			}
			return nil
		}).Should(Succeed(), "a higher limit")
	})

	It("counts after a restart", func(ctx SpecContext) {
		t := limited(ctx, tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(100))})
		fill := func() (err error) {
			for n := 0; err == nil; n++ {
				err = t.Client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "o-"}})
			}
			return err
		}
		Expect(fill()).To(tooMany)
		whileStopped(func() {
			Expect(t.Client.Create(ctx, configMap(ns, "unseen", nil))).NotTo(Succeed())
			Expect(t.Client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(ns))).To(Succeed(), "deletions pass")
		})
		Eventually(fill).WithTimeout(2 * kit.Soon).Should(tooMany)
		objects, _ := kit.Stored(ctx, super, t.Key())
		Expect(objects).To(And(BeNumerically(">", 90), BeNumerically("<=", 100)))
	})
})
