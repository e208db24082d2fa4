package integration

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("A permission that the syncer lacks", func() {
	It("is reported to the admin, while the tenant learns only that the object fails, and delays no other object", func(ctx SpecContext) {
		const ns = "poor"
		poor, config := newAccount(ctx, "poor")
		grant(ctx, poor, syncerRulesWithout(ctx, "create", "services")...)
		red := tenant(ctx)
		useSyncer(config)
		web := service(ns, "web")
		kit.Create(ctx, red.Client, kit.Namespace(ns), web, kit.Pod(ns, "web"))
		Eventually(syncer.Metric).WithArguments("vc_syncer_sync_duration_seconds", map[string]string{"kind": "Service", "outcome": "forbidden"}).
			Should(BeNumerically(">=", 3), "it is retried")
		Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("web"))
		Eventually(kit.Events(ctx, red, web, "SyncFailed")).WithTimeout(3 * kit.Soon).Should(ConsistOf(
			"the super cluster does not take this object for now; the syncer retries it, and an admin of the platform can read the cause"))
		Eventually(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2 * kit.Soon).
			Should(HaveField("Status.Conditions", ContainElement(HaveField("Message", MatchRegexp( // the tenant's DNS has a Service, too
				`^\d objects? pending, oldest Service [a-z/-]+: Failed: the syncer lacks a right in the super cluster`)))))
		events := &corev1.EventList{}
		Expect(red.Client.List(ctx, events, client.InNamespace(ns))).To(Succeed())
		Expect(events.Items).NotTo(ContainElement(And(
			HaveField("InvolvedObject.Kind", "Service"), HaveField("Reason", Not(Equal("SyncFailed"))))))

		grant(ctx, poor, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create"}})
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, web)).WithTimeout(3 * kit.Soon).Should(Succeed())
	})

	It("prevents the sync of a custom resource until an admin adds a role", func(ctx SpecContext) {
		const ns = "mill"
		definition := widgets()
		kit.Create(ctx, super.Client, definition)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, definition)).To(Succeed()) })
		red := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{CustomResources: []tenancyv1alpha1.CustomResourceSync{{
				Group: definition.Spec.Group, Version: "v1", Resource: definition.Spec.Names.Plural, Direction: tenancyv1alpha1.SyncDown,
			}}}
		})
		syncing := func(ctx context.Context) (string, error) {
			vc := red.VC.DeepCopy()
			err := kit.Get(ctx, super.Client, vc)
			return meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing).Message, err
		}
		Eventually(syncing).WithContext(ctx).Should(ContainSubstring(
			"widgets.rights.example.com: in the super cluster the syncer lacks the rights to list, watch, get, create, patch, delete"))

		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "vc-syncer-widgets", Labels: map[string]string{rbac.AggregateToSyncer: "true"}},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{definition.Spec.Group}, Resources: []string{"widgets"},
				Verbs: []string{"list", "watch", "get", "create", "patch", "delete"},
			}},
		}
		kit.Create(ctx, super.Client, role)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, role)).To(Succeed()) })
		wheel := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"teeth": int64(12)}}}
		wheel.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: "v1", Kind: "Widget"})
		wheel.SetNamespace(ns)
		wheel.SetName("wheel")
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		createServed(ctx, red, wheel)
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, wheel)).WithTimeout(3 * kit.Soon).Should(Succeed())
		Eventually(syncing).WithContext(ctx).ShouldNot(ContainSubstring("widgets"))
		kit.Edit(ctx, red.Client, wheel, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{"teeth": int64(13)} })
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, wheel))).
			Should(HaveField("Object", HaveKeyWithValue("spec", HaveKeyWithValue("teeth", int64(13)))))
		Expect(red.Client.Delete(ctx, wheel)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, wheel))
	})
})

// syncerRulesWithout returns the shipped permissions of the syncer, except one.
func syncerRulesWithout(ctx context.Context, verb, resource string) []rbacv1.PolicyRule {
	GinkgoHelper()
	base := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: rbac.Syncer + "-base"}}
	Expect(kit.Get(ctx, super.Client, base)).To(Succeed())
	var rules []rbacv1.PolicyRule
	for _, rule := range base.Rules {
		if i := slices.Index(rule.Resources, resource); i >= 0 {
			less := rule.DeepCopy()
			less.Resources = []string{resource}
			less.Verbs = slices.DeleteFunc(less.Verbs, func(v string) bool { return v == verb })
			rules = append(rules, *less)
			rule.Resources = slices.Delete(rule.Resources, i, i+1)
		}
		rules = append(rules, rule)
	}
	return rules
}

// widgets returns the definition of a custom resource of the super cluster.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	properties := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", XPreserveUnknownFields: &preserve},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.rights.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "rights.example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: properties},
			}},
		},
	}
}
