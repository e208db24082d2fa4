package integration

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// platform is the group of the custom resources in these specs.
	platform = "platform.example.com"
	// briefly is the interval at which their syncer compares definitions.
	briefly = 2 * time.Second
)

// Custom resources of the super cluster: with a status subresource, without,
// and cluster-scoped.
const (
	gears    = "gears"
	levers   = "levers"
	catalogs = "catalogs"
)

var kindOfCustom = map[string]string{gears: "Gear", levers: "Lever", catalogs: "Catalog"}

// definition returns the CustomResourceDefinition of a resource.
func definition(resource string, change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource + "." + platform},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: platform, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: resource, Kind: kindOfCustom[resource]},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
	if resource == gears {
		d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	if resource == catalogs {
		d.Spec.Scope = apiextensionsv1.ClusterScoped
	}
	for _, f := range change {
		f(d)
	}
	return d
}

// custom returns a custom resource with a spec of one field.
func custom(resource, ns, name, color string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": color}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: platform, Version: "v1", Kind: kindOfCustom[resource]})
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// withCustom enables the sync of custom resources for a tenant.
func withCustom(direction tenancyv1alpha1.SyncDirection, resources ...string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		if vc.Spec.Sync == nil {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{}
		}
		for _, resource := range resources {
			vc.Spec.Sync.CustomResources = append(vc.Spec.Sync.CustomResources, tenancyv1alpha1.CustomResourceSync{
				Group: platform, Version: "v1", Resource: resource, Direction: direction,
			})
		}
	}
}

// field matches a custom resource with a value in one of its fields.
func field(value any, path ...string) gomegatypes.GomegaMatcher {
	return WithTransform(func(u *unstructured.Unstructured) any {
		found, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		return found
	}, Equal(value))
}

// syncingMessage returns the message of a tenant's condition.
func syncingMessage(ctx context.Context, t *local.Tenant) func() (string, error) {
	return func() (string, error) {
		vc, err := kit.Read(ctx, super.Client, t.VC)()
		if c := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing); c != nil {
			return c.Message, err
		}
		return "", err
	}
}

// allowCustom grants the syncer the permissions that an admin would have to,
// and creates definitions in the super cluster.
func allowCustom(ctx context.Context) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "vc-syncer-platform", Labels: map[string]string{rbac.AggregateToSyncer: "true"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{platform}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		}},
	}
	kit.Create(ctx, super.Client, role)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, role)).To(Succeed()) })
	own, err := local.NewClient(account)
	Expect(err).NotTo(HaveOccurred())
	right := authorizationv1.ResourceAttributes{Verb: "patch", Group: platform, Resource: gears, Namespace: "any"}
	Eventually(local.Allowed).WithContext(ctx).WithArguments(own, right).Should(BeTrue())
}

// undefine deletes definitions in the super cluster.
func undefine(ctx context.Context, resources ...string) {
	GinkgoHelper()
	for _, resource := range resources {
		Expect(client.IgnoreNotFound(super.Client.Delete(ctx, definition(resource)))).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, definition(resource))
	}
}

// shouldBeServed waits until the tenant's apiserver serves a custom resource.
func shouldBeServed(ctx context.Context, t *local.Tenant, resource, ns string) {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(custom(resource, ns, "", "").GroupVersionKind())
	Eventually(t.Client.List).WithContext(ctx).WithArguments(list).WithTimeout(2 * kit.Soon).Should(Succeed())
}

var _ = Describe("Custom resources", Ordered, func() {
	const ns = "custom"

	BeforeAll(func(ctx SpecContext) {
		allowCustom(ctx)
		useSyncer(account, func(o *app.Options) { o.Patrol = briefly })
	})

	Describe("that are synced down", Ordered, func() {
		var red, blue, plain *local.Tenant

		BeforeAll(func(ctx SpecContext) {
			red = tenant(ctx, withCustom(tenancyv1alpha1.SyncDown, gears, levers))
			blue = tenant(ctx, withCustom(tenancyv1alpha1.SyncDown, gears))
			plain = tenant(ctx)
			for _, t := range []*local.Tenant{red, blue, plain} {
				kit.Create(ctx, t.Client, kit.Namespace(ns))
			}
			DeferCleanup(func(ctx SpecContext) { undefine(ctx, gears, levers) })
		})

		It("wait for their definition, which the condition reports, while everything else is synced", func(ctx SpecContext) {
			Eventually(syncingMessage(ctx, red)).Should(And(
				ContainSubstring(gears+"."+platform), ContainSubstring(levers+"."+platform), ContainSubstring("not found")))
			Expect(kit.Read(ctx, super.Client, red.VC)()).To(syncing(metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
			kit.Create(ctx, red.Client, kit.Pod(ns, "meanwhile"))
			Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ConsistOf("meanwhile"))

			kit.Create(ctx, super.Client, definition(gears), definition(levers))
			shouldBeServed(ctx, red, gears, ns)
			shouldBeServed(ctx, red, levers, ns)
			shouldBeServed(ctx, blue, gears, ns)
			Eventually(syncingMessage(ctx, red)).Should(Not(ContainSubstring(platform)))
			Expect(kit.Get(ctx, plain.Client, definition(gears))).To(MatchError(apierrors.IsNotFound, "not found"))
			Expect(kit.Get(ctx, blue.Client, definition(levers))).To(MatchError(apierrors.IsNotFound, "not found"))
		})

		It("are created, updated and deleted, and have a status without the super cluster's names", func(ctx SpecContext) {
			for _, resource := range []string{gears, levers} {
				w := custom(resource, ns, "w", "red")
				kit.Create(ctx, red.Client, w)
				down := kit.SuperOf(red, w)
				kit.ShouldExist(ctx, super.Client, down)
				Expect(down.GetAnnotations()).To(HaveKeyWithValue(names.UID, string(w.GetUID())))

				kit.Edit(ctx, red.Client, w, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{"color": "crimson"} })
				Eventually(kit.Read(ctx, super.Client, down)).Should(field("crimson", "spec", "color"))

				Expect(kit.Get(ctx, super.Client, down)).To(Succeed())
				down.Object["status"] = map[string]any{"message": "made in " + red.Super(ns), "count": int64(2)}
				if resource == gears {
					Expect(super.Client.Status().Update(ctx, down)).To(Succeed())
				} else {
					Expect(super.Client.Update(ctx, down)).To(Succeed())
				}
				Eventually(kit.Read(ctx, red.Client, w)).Should(field("made in "+ns, "status", "message"))
				Consistently(kit.Read(ctx, super.Client, down)).Should(field("made in "+red.Super(ns), "status", "message"))

				Expect(red.Client.Delete(ctx, w)).To(Succeed())
				kit.ShouldVanish(ctx, super.Client, down)
			}
		})

		It("of two tenants may have the same name", func(ctx SpecContext) {
			for i, t := range []*local.Tenant{red, blue} {
				kit.Create(ctx, t.Client, custom(gears, ns, "same", fmt.Sprint(i)))
			}
			for i, t := range []*local.Tenant{red, blue} {
				Eventually(kit.Read(ctx, super.Client, kit.SuperOf(t, custom(gears, ns, "same", "")))).Should(field(fmt.Sprint(i), "spec", "color"))
			}
		})

		It("keep the super cluster's definition, whatever a tenant changes in its copy", func(ctx SpecContext) {
			d := definition(gears)
			kit.Edit(ctx, red.Client, d, func(d *apiextensionsv1.CustomResourceDefinition) {
				d.Spec.Names.ShortNames = []string{"wdg"}
				delete(d.Labels, names.FromSuper)
			})
			Eventually(kit.Read(ctx, red.Client, d)).Should(And(
				HaveField("Spec.Names.ShortNames", BeEmpty()), HaveField("Labels", HaveKeyWithValue(names.FromSuper, "true"))))
			kit.Edit(ctx, super.Client, d, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"wd"} })
			for _, t := range []*local.Tenant{red, blue} {
				Eventually(kit.Read(ctx, t.Client, d)).Should(HaveField("Spec.Names.ShortNames", ConsistOf("wd")))
			}
		})

		It("have an event when they are rejected", func(ctx SpecContext) {
			taken := kit.SuperOf(red, custom(gears, ns, "taken", "platform"))
			kit.Create(ctx, super.Client, taken)
			w := custom(gears, ns, "taken", "red")
			kit.Create(ctx, red.Client, w)
			Eventually(kit.Rejections(ctx, red, w)).Should(ContainElement(ContainSubstring("belongs to another owner")))
			Expect(kit.Read(ctx, super.Client, taken)()).To(field("platform", "spec", "color"))
			Expect(super.Client.Delete(ctx, taken)).To(Succeed())
			Eventually(kit.Read(ctx, super.Client, taken)).WithTimeout(2 * kit.Soon).Should(field("red", "spec", "color"))
		})

		It("stay when their sync is disabled, and catch up when it is enabled again", func(ctx SpecContext) {
			kept, gone := custom(gears, ns, "kept", "old"), custom(gears, ns, "gone", "old")
			kit.Create(ctx, red.Client, kept, gone)
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kept))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, gone))
			kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Sync = nil })
			// Changes after this one are synced by the next engagement.
			Eventually(func(g Gomega) {
				vc, err := kit.Read(ctx, super.Client, red.VC)()
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(syncingGeneration(ctx, red)).To(Equal(vc.Generation))
			}).WithContext(ctx).Should(Succeed())
			kit.Create(ctx, red.Client, kit.Pod(ns, "after"))
			Eventually(running).WithContext(ctx).WithArguments(red.Client, ns).Should(ContainElement("after"))

			kit.Edit(ctx, red.Client, kept, func(w *unstructured.Unstructured) { w.Object["spec"] = map[string]any{"color": "new"} })
			Expect(red.Client.Delete(ctx, gone)).To(Succeed())
			Consistently(kit.Read(ctx, super.Client, kit.SuperOf(red, kept))).Should(field("old", "spec", "color"))
			Expect(kit.Get(ctx, super.Client, kit.SuperOf(red, gone))).To(Succeed())
			Expect(kit.Get(ctx, red.Client, definition(gears))).To(Succeed())
			// The other tenant's custom resources are still watched.
			kit.Create(ctx, blue.Client, custom(gears, ns, "still", "blue"))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(blue, custom(gears, ns, "still", "")))

			kit.Edit(ctx, super.Client, red.VC, withCustom(tenancyv1alpha1.SyncDown, gears, levers))
			Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, kept))).WithTimeout(2 * kit.Soon).Should(field("new", "spec", "color"))
			kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, gone))
			kit.Create(ctx, red.Client, custom(levers, ns, "both", "red"))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, custom(levers, ns, "both", "")))
		})

		It("with a definition of the tenant's own are synced if the definitions are compatible", func(ctx SpecContext) {
			for _, d := range []*apiextensionsv1.CustomResourceDefinition{
				definition(gears, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"own"} }),
				definition(levers, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.ClusterScoped }),
			} {
				kit.Create(ctx, plain.Client, d)
			}
			shouldBeServed(ctx, plain, gears, ns)
			shouldBeServed(ctx, plain, levers, "")
			kit.Create(ctx, plain.Client, custom(gears, ns, "own", "plain"), custom(levers, "", "own", "plain"))
			kit.Edit(ctx, super.Client, plain.VC, withCustom(tenancyv1alpha1.SyncDown, gears, levers))
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(plain, custom(gears, ns, "own", "")))
			Eventually(syncingMessage(ctx, plain)).Should(And(
				ContainSubstring(levers+"."+platform), ContainSubstring("definition of its own"), Not(ContainSubstring(gears))))
			own := kit.Read(ctx, plain.Client, definition(gears))
			Consistently(own).WithTimeout(2 * briefly).Should(HaveField("Spec.Names.ShortNames", ConsistOf("own")))
			Expect(must(own()).Labels).NotTo(HaveKey(names.FromSuper))
			all := &unstructured.UnstructuredList{}
			all.SetGroupVersionKind(custom(levers, "", "", "").GroupVersionKind())
			Expect(super.Client.List(ctx, all)).To(Succeed())
			Expect(all.Items).To(HaveEach(WithTransform(func(u unstructured.Unstructured) string { return u.GetName() }, Not(Equal("own")))))
		})
	})

	It("that are cluster-scoped cannot be synced down, even if the tenant's definition is namespaced", func(ctx SpecContext) {
		kit.Create(ctx, super.Client, definition(catalogs))
		DeferCleanup(func(ctx SpecContext) { undefine(ctx, catalogs) })
		red := tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns),
			definition(catalogs, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Scope = apiextensionsv1.NamespaceScoped }))
		shouldBeServed(ctx, red, catalogs, ns)
		kit.Create(ctx, red.Client, custom(catalogs, ns, "mine", "red"))
		kit.Edit(ctx, super.Client, red.VC, withCustom(tenancyv1alpha1.SyncDown, catalogs))
		Eventually(syncingMessage(ctx, red)).Should(ContainSubstring("can only be synced up"))
		Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, custom(catalogs, "", "mine", "")).
			Should(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("that are synced up are translated, and restored when the tenant changes them", func(ctx SpecContext) {
		kit.Create(ctx, super.Client, definition(gears), definition(levers), definition(catalogs))
		DeferCleanup(func(ctx SpecContext) { undefine(ctx, gears, levers, catalogs) })
		red := tenant(ctx, withCustom(tenancyv1alpha1.SyncUp, gears, levers, catalogs))
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, kit.Namespace(ns)))
		for _, resource := range []string{gears, levers} {
			w := custom(resource, red.Super(ns), "offered", "in "+red.Super(ns))
			kit.Create(ctx, super.Client, w)
			w.Object["status"] = map[string]any{"message": "by " + red.Key()}
			if resource == gears {
				Expect(super.Client.Status().Update(ctx, w)).To(Succeed())
			} else {
				Expect(super.Client.Update(ctx, w)).To(Succeed())
			}
			up := custom(resource, ns, "offered", "")
			Eventually(kit.Read(ctx, red.Client, up)).WithTimeout(2 * kit.Soon).Should(And(
				field("in "+ns, "spec", "color"), field("by "+red.VC.Name, "status", "message")))

			kit.Edit(ctx, red.Client, up, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"color": "mine"} })
			Eventually(kit.Read(ctx, red.Client, up)).Should(field("in "+ns, "spec", "color"))
			Expect(kit.Read(ctx, super.Client, w)()).To(field("in "+red.Super(ns), "spec", "color"))
			Expect(red.Client.Delete(ctx, up)).To(Succeed())
			kit.ShouldExist(ctx, red.Client, up)

			Expect(super.Client.Delete(ctx, w)).To(Succeed())
			kit.ShouldVanish(ctx, red.Client, up)
		}
		// Those elsewhere do not belong to the tenant.
		other := custom(gears, "default", "other", "platform")
		kit.Create(ctx, super.Client, other)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, other))).To(Succeed()) })

		public, hidden := custom(catalogs, "", "public", "all"), custom(catalogs, "", "hidden", "none")
		public.SetLabels(map[string]string{names.Public: "true"})
		kit.Create(ctx, super.Client, public, hidden)
		kit.ShouldExist(ctx, red.Client, custom(catalogs, "", "public", ""))
		Consistently(kit.Get).WithContext(ctx).WithArguments(red.Client, custom(catalogs, "", "hidden", "")).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		kit.Edit(ctx, super.Client, public, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		kit.ShouldVanish(ctx, red.Client, custom(catalogs, "", "public", ""))
		Expect(kit.Get(ctx, red.Client, custom(gears, "default", "other", ""))).To(MatchError(apierrors.IsNotFound, "not found"))
	})
})

// syncingGeneration returns the generation of the VirtualCluster that the
// syncer has observed.
func syncingGeneration(ctx context.Context, t *local.Tenant) (int64, error) {
	vc, err := kit.Read(ctx, super.Client, t.VC)()
	if c := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing); c != nil {
		return c.ObservedGeneration, err
	}
	return 0, err
}
