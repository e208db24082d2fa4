package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// sharedGroup is the group of the CRDs in these specs.
const sharedGroup = "shared.example.com"

type definitionChange = func(*apiextensionsv1.CustomResourceDefinition)

// sharedDefinition returns a CRD whose spec has the given fields, in versions
// of which the last is stored.
func sharedDefinition(kind string, fields []string, versions []string, change ...definitionChange) *apiextensionsv1.CustomResourceDefinition {
	plural := kind + "s"
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + sharedGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: sharedGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
		},
	}
	for i, name := range versions {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
			}},
		})
	}
	for _, f := range change {
		f(d)
	}
	return d
}

// publishedTo publishes a CRD to the tenants that a range selects.
func publishedTo(applicable string) definitionChange {
	return func(d *apiextensionsv1.CustomResourceDefinition) {
		if applicable == "" {
			delete(d.Annotations, names.ApplicableRange)
			return
		}
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, names.ApplicableRange, applicable)
	}
}

// forced forces a CRD upon all tenants.
func forced(d *apiextensionsv1.CustomResourceDefinition) {
	metav1.SetMetaDataLabel(&d.ObjectMeta, names.CRDSharingPolicy, names.Forced)
}

// share creates a CRD in the super cluster, and deletes it after the spec.
func share(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	kit.Create(ctx, super.Client, d)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(super.Client.Delete(ctx, d))).To(Succeed())
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, d).WithTimeout(recovery).Should(MatchError(apierrors.IsNotFound, "not found"))
	})
}

// sharedObject returns an object of a CRD.
func sharedObject(d *apiextensionsv1.CustomResourceDefinition, version, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(fields)}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind})
	u.SetNamespace(metav1.NamespaceDefault)
	u.SetName(name)
	return u
}

// choose sets the policy of a tenant.
func choose(ctx context.Context, t *local.Tenant, policy sharedcrds.Policy) {
	GinkgoHelper()
	system := kit.Namespace(metav1.NamespaceSystem)
	kit.Edit(ctx, t.Client, system, func(ns *corev1.Namespace) {
		metav1.SetMetaDataAnnotation(&ns.ObjectMeta, names.CRDPolicy, string(policy))
	})
}

// servedVersions matches a CRD that serves exactly these versions.
func servedVersions(versions ...string) gomegatypes.GomegaMatcher {
	return WithTransform(func(d *apiextensionsv1.CustomResourceDefinition) []string {
		served := []string{}
		for _, v := range d.Spec.Versions {
			if v.Served {
				served = append(served, v.Name)
			}
		}
		return served
	}, Equal(append([]string{}, versions...)))
}

// sharedCondition returns the condition of a tenant, as status/reason: message.
func sharedCondition(ctx context.Context, t *local.Tenant) func() (string, error) {
	return func() (string, error) {
		vc, err := kit.Read(ctx, super.Client, t.VC)()
		if err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSharedCRDs)
		if c == nil {
			return "", nil
		}
		return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message), nil
	}
}

// unmodified creates a tenant with an external control plane: a kube-apiserver
// of another vc-standalone.
func unmodified(ctx context.Context) *local.Tenant {
	GinkgoHelper()
	host := startOtherHost(ctx)
	DeferCleanup(func() { Expect(host.Stop()).To(Succeed()) })
	there := &local.Tenant{Client: host.Client, Config: host.Config, VC: virtualCluster()}
	return tenantThrough(ctx, there, must(os.ReadFile(filepath.Join(host.Dir, "super.kubeconfig"))))
}

// createServed creates an object as soon as the tenant serves its version.
func createServed(ctx context.Context, t *local.Tenant, u *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(t.Client.Create).WithContext(ctx).WithArguments(u).WithTimeout(2 * kit.Soon).Should(Succeed())
}

var _ = Describe("Shared CRDs", Ordered, func() {
	const gold = "example.com/tier=gold"
	var red, blue *local.Tenant

	isGone := MatchError(apierrors.IsNotFound, "not found")

	BeforeAll(func(ctx SpecContext) {
		useSyncer(account)
		red, blue = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			metav1.SetMetaDataLabel(&vc.ObjectMeta, "example.com/tier", "gold")
		}), tenant(ctx)
	})

	It("are published to no tenant, some or all, which the admin changes at any time", func(ctx SpecContext) {
		d := sharedDefinition("anvil", []string{"color"}, []string{"v1"})
		share(ctx, d)
		Consistently(kit.Get).WithContext(ctx).WithArguments(red.Client, d.DeepCopy()).Should(isGone)
		Expect(sharedCondition(ctx, red)()).To(BeEmpty())

		kit.Edit(ctx, super.Client, d, publishedTo(gold))
		Eventually(kit.Read(ctx, red.Client, d)).Should(servedVersions("v1"))
		Eventually(sharedCondition(ctx, red)).Should(HavePrefix("True/Shared"))
		createServed(ctx, red, sharedObject(d, "v1", "kept", map[string]any{"color": "red"}))
		Expect(kit.Get(ctx, blue.Client, d.DeepCopy())).To(isGone)

		kit.Edit(ctx, super.Client, d, publishedTo(names.AllTenants))
		Eventually(kit.Read(ctx, blue.Client, d)).Should(servedVersions("v1"))

		By("following the labels of a VirtualCluster")
		kit.Edit(ctx, super.Client, d, publishedTo(gold))
		Eventually(kit.Get).WithContext(ctx).WithArguments(blue.Client, d.DeepCopy()).WithTimeout(2 * kit.Soon).Should(isGone)
		kit.Edit(ctx, super.Client, blue.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			metav1.SetMetaDataLabel(&vc.ObjectMeta, "example.com/tier", "gold")
		})
		Eventually(kit.Read(ctx, blue.Client, d)).Should(servedVersions("v1"))
		kit.Edit(ctx, super.Client, blue.VC, func(vc *tenancyv1alpha1.VirtualCluster) { delete(vc.Labels, "example.com/tier") })
		Eventually(kit.Get).WithContext(ctx).WithArguments(blue.Client, d.DeepCopy()).WithTimeout(2 * kit.Soon).Should(isGone)
	})

	It("follow the super cluster's, and cannot be changed or deleted by a tenant", func(ctx SpecContext) {
		d := sharedDefinition("bellow", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants), forced)
		share(ctx, d)
		own := d.DeepCopy()
		kit.ShouldExist(ctx, red.Client, own)
		refused := And(MatchError(apierrors.IsForbidden, "forbidden"), MatchError(ContainSubstring("the platform forces this CustomResourceDefinition")))
		for _, change := range []definitionChange{
			func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"bl"} },
			func(d *apiextensionsv1.CustomResourceDefinition) { d.Labels = nil },
			func(d *apiextensionsv1.CustomResourceDefinition) { d.Annotations = nil },
			func(d *apiextensionsv1.CustomResourceDefinition) { d.Finalizers = []string{"example.com/mine"} },
		} {
			changed := own.DeepCopy()
			change(changed)
			Expect(red.Client.Patch(ctx, changed, client.MergeFrom(own))).To(refused)
		}
		trimmed := own.DeepCopy()
		trimmed.Status.StoredVersions = []string{"v1", "v2"}
		Expect(red.Client.Status().Patch(ctx, trimmed, client.MergeFrom(own))).To(refused)
		Expect(red.Client.Delete(ctx, own.DeepCopy())).To(refused)
		Expect(red.Client.DeleteAllOf(ctx, own.DeepCopy(), client.MatchingFields{"metadata.name": own.Name})).To(refused)
		Expect(red.Client.Create(ctx, sharedDefinition("bellow", nil, []string{"v9"}))).To(refused)
		kit.Edit(ctx, red.Client, own.DeepCopy(), func(d *apiextensionsv1.CustomResourceDefinition) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "example.com/note", "of the tenant")
		})

		kit.Edit(ctx, super.Client, d, func(d *apiextensionsv1.CustomResourceDefinition) {
			next := *d.Spec.Versions[0].DeepCopy()
			next.Name, next.Storage = "v2", false
			d.Spec.Versions = append(d.Spec.Versions, next)
		})
		Eventually(kit.Read(ctx, red.Client, own)).Should(servedVersions("v1", "v2"))
	})

	It("are repaired when a tenant with an external control plane changes or deletes them", func(ctx SpecContext) {
		d := sharedDefinition("awl", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants), forced)
		share(ctx, d)
		outside := unmodified(ctx)
		own := d.DeepCopy()
		kit.ShouldExist(ctx, outside.Client, own)
		want := own.Spec.DeepCopy()
		kit.Edit(ctx, outside.Client, own, func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Names.ShortNames = []string{"bl"}
			d.Labels, d.Annotations = nil, nil
		})
		repaired := WithTransform(func(d *apiextensionsv1.CustomResourceDefinition) any { return &d.Spec }, Equal(want))
		Eventually(kit.Read(ctx, outside.Client, own)).Should(And(repaired, HaveField("Labels", HaveKey(names.SharedCRD)),
			HaveField("Annotations", HaveKeyWithValue(names.FixedCRD, names.Forced))))
		Expect(outside.Client.Create(ctx, sharedDefinition("awl", nil, []string{"v9"}))).To(MatchError(apierrors.IsAlreadyExists, "exists"))

		was := own.DeepCopy()
		Expect(outside.Client.Delete(ctx, own)).To(Succeed())
		Eventually(kit.Read(ctx, outside.Client, own)).WithTimeout(2 * kit.Soon).Should(HaveField("UID", Not(Equal(was.UID))))
	})

	It("are recalled by one deletion, which keeps the tenant's objects until an admin says otherwise", func(ctx SpecContext) {
		d := sharedDefinition("chisel", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
		share(ctx, d)
		u := sharedObject(d, "v1", "kept", map[string]any{"color": "red"})
		createServed(ctx, red, u)
		kit.ShouldExist(ctx, blue.Client, d.DeepCopy())

		Expect(super.Client.Delete(ctx, d.DeepCopy())).To(Succeed())
		Eventually(kit.Get).WithContext(ctx).WithArguments(blue.Client, d.DeepCopy()).WithTimeout(2 * kit.Soon).Should(isGone)
		Eventually(sharedCondition(ctx, red)).WithTimeout(2 * kit.Soon).Should(And(HavePrefix("False/ObjectsLeft"), ContainSubstring(d.Name+"/")))
		left, err := kit.Read(ctx, red.Client, d)()
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(servedVersions())

		By("publishing it again")
		kit.ShouldVanish(ctx, super.Client, d)
		again := sharedDefinition("chisel", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
		kit.Create(ctx, super.Client, again)
		Eventually(kit.Read(ctx, red.Client, u)).WithTimeout(2 * kit.Soon).Should(And(
			HaveField("GetUID()", u.GetUID()), field("red", "spec", "color")))

		By("purging it")
		Expect(super.Client.Delete(ctx, again)).To(Succeed())
		Eventually(sharedCondition(ctx, red)).WithTimeout(2 * kit.Soon).Should(ContainSubstring(d.Name + "/"))
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			metav1.SetMetaDataAnnotation(&vc.ObjectMeta, names.PurgeCRDs, d.Name+"/"+string(left.UID))
		})
		Eventually(kit.Get).WithContext(ctx).WithArguments(red.Client, d.DeepCopy()).WithTimeout(2 * kit.Soon).Should(isGone)
	})

	It("leave a tenant's own CRD alone by default, and become its own without the label", func(ctx SpecContext) {
		own := sharedDefinition("drill", []string{"own"}, []string{"v1alpha1"})
		kit.Create(ctx, red.Client, own)
		d := sharedDefinition("drill", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
		share(ctx, d)
		copied := d.DeepCopy()
		kit.ShouldExist(ctx, blue.Client, copied)
		Expect(kit.Read(ctx, red.Client, own)()).To(servedVersions("v1alpha1"))

		kit.Edit(ctx, blue.Client, copied, func(d *apiextensionsv1.CustomResourceDefinition) { delete(d.Labels, names.SharedCRD) })
		Expect(super.Client.Delete(ctx, d)).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, d)
		Consistently(kit.Read(ctx, blue.Client, copied)).Should(servedVersions("v1"))

		By("the policy that uses none")
		choose(ctx, blue, sharedcrds.NeverUseSystemCRDUnlessForced)
		never := sharedDefinition("edger", nil, []string{"v1"}, publishedTo(names.AllTenants))
		share(ctx, never)
		kit.ShouldExist(ctx, red.Client, never.DeepCopy())
		Consistently(kit.Get).WithContext(ctx).WithArguments(blue.Client, never.DeepCopy()).Should(isGone)
		kit.Edit(ctx, super.Client, never, forced)
		kit.ShouldExist(ctx, blue.Client, never.DeepCopy())
		choose(ctx, blue, sharedcrds.LocalCRDFirst)
	})

	It("replace a tenant's own CRD by its policy, and restore it with every field of its objects", func(ctx SpecContext) {
		own := sharedDefinition("file", []string{"own", "both"}, []string{"v1alpha1", "v1beta1"})
		kit.Create(ctx, red.Client, own)
		kit.ShouldExist(ctx, red.Client, own)
		was := own.Spec.DeepCopy()
		u := sharedObject(own, "v1beta1", "kept", map[string]any{"own": "mine", "both": "b"})
		createServed(ctx, red, u)
		d := sharedDefinition("file", []string{"both", "color"}, []string{"v1", "v2"}, publishedTo(names.AllTenants))
		share(ctx, d)

		choose(ctx, red, sharedcrds.SystemCRDFirst)
		Eventually(kit.Read(ctx, red.Client, d)).Should(servedVersions("v1", "v2"))
		Expect(red.Client.Delete(ctx, own.DeepCopy())).To(MatchError(ContainSubstring("in the place of your own")))
		now := sharedObject(d, "v2", "kept", nil)
		Eventually(kit.Get).WithContext(ctx).WithArguments(red.Client, now).Should(Succeed())
		now.SetLabels(map[string]string{"touched": "true"})
		Expect(red.Client.Update(ctx, now)).To(Succeed())

		choose(ctx, red, sharedcrds.LocalCRDFirst)
		Eventually(kit.Read(ctx, red.Client, own)).WithTimeout(2 * kit.Soon).Should(And(
			HaveField("Spec", Equal(*was)), HaveField("Status.StoredVersions", ConsistOf("v1beta1")),
			HaveField("Labels", Not(HaveKey(names.SharedCRD))),
		))
		Eventually(kit.Read(ctx, red.Client, u)).Should(And(
			HaveField("GetUID()", u.GetUID()), HaveField("GetLabels()", HaveKeyWithValue("touched", "true")),
			field("mine", "spec", "own"), field("b", "spec", "both")))
	})

	It("do not replace what cannot be restored, which the condition and an event say", func(ctx SpecContext) {
		own := sharedDefinition("gauge", []string{"own"}, []string{"v1"}, func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Scope = apiextensionsv1.ClusterScoped
		})
		kit.Create(ctx, red.Client, own)
		kit.ShouldExist(ctx, red.Client, own)
		d := sharedDefinition("gauge", []string{"color"}, []string{"v1"}, forced)
		share(ctx, d)
		Eventually(sharedCondition(ctx, red)).Should(And(HavePrefix("False/Conflict: gauges."), ContainSubstring("scope")))
		found := own.DeepCopy()
		Expect(kit.Get(ctx, red.Client, found)).To(Succeed())
		Expect(found.Spec).To(Equal(own.Spec))
		Eventually(func(g Gomega) {
			events := &corev1.EventList{}
			g.Expect(red.Client.List(ctx, events, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("InvolvedObject.Name", own.Name), HaveField("Message", ContainSubstring("scope")))))
		}).WithContext(ctx).Should(Succeed())

		By("deleting it on the admin's word")
		Expect(sharedCondition(ctx, red)()).To(ContainSubstring(own.Name + "/" + string(own.UID)))
		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			metav1.SetMetaDataAnnotation(&vc.ObjectMeta, names.PurgeCRDs, own.Name+"/"+string(own.UID))
		})
		Eventually(kit.Read(ctx, red.Client, own)).WithTimeout(2 * kit.Soon).Should(And(
			HaveField("UID", Not(Equal(own.UID))), HaveField("Spec.Scope", apiextensionsv1.NamespaceScoped)))
	})

	It("replace and restore a CRD with many objects in seconds", func(ctx SpecContext) {
		count := atLength(1000, 100)
		own := sharedDefinition("lathe", []string{"own"}, []string{"v1alpha1"})
		kit.Create(ctx, red.Client, own)
		createServed(ctx, red, sharedObject(own, "v1alpha1", "kept-0", map[string]any{"own": "0"}))
		for i := 1; i < count; i++ {
			kit.Create(ctx, red.Client, sharedObject(own, "v1alpha1", fmt.Sprintf("kept-%d", i), map[string]any{"own": fmt.Sprint(i)}))
		}
		d := sharedDefinition("lathe", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
		share(ctx, d)
		began := time.Now()
		choose(ctx, red, sharedcrds.SystemCRDFirst)
		Eventually(kit.Read(ctx, red.Client, d)).WithPolling(50 * time.Millisecond).Should(servedVersions("v1"))
		AddReportEntry("replaced", time.Since(began))
		began = time.Now()
		choose(ctx, red, sharedcrds.LocalCRDFirst)
		Eventually(kit.Read(ctx, red.Client, own)).WithTimeout(kit.Soon * 2).WithPolling(50 * time.Millisecond).Should(And(
			servedVersions("v1alpha1"), HaveField("Labels", Not(HaveKey(names.SharedCRD)))))
		AddReportEntry("restored", time.Since(began))
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(sharedObject(own, "v1alpha1", "", nil).GroupVersionKind())
		Eventually(func() ([]unstructured.Unstructured, error) { return all.Items, red.Client.List(ctx, all) }).Should(HaveLen(count))
		for i := range all.Items {
			found, _, _ := unstructured.NestedString(all.Items[i].Object, "spec", "own")
			Expect("kept-" + found).To(Equal(all.Items[i].GetName()))
		}
	})

	It("are served by all of many tenants in seconds", func(ctx SpecContext) {
		const label = "example.com/crowd"
		crowd := make([]*local.Tenant, atLength(50, 5))
		DeferCleanup(func(ctx SpecContext) { // the super cluster removes their namespaces a few at a time
			Eventually(func() ([]tenancyv1alpha1.VirtualCluster, error) {
				left := &tenancyv1alpha1.VirtualClusterList{}
				err := super.Client.List(ctx, left, client.MatchingLabels{label: "yes"})
				return left.Items, err
			}).WithContext(ctx).WithTimeout(4 * recovery).Should(BeEmpty())
		}, NodeTimeout(kit.Longest))
		var creating errgroup.Group
		creating.SetLimit(5)
		for i := range crowd {
			creating.Go(func() error {
				defer GinkgoRecover()
				crowd[i] = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { metav1.SetMetaDataLabel(&vc.ObjectMeta, label, "yes") })
				return nil
			})
		}
		Expect(creating.Wait()).To(Succeed())
		d := sharedDefinition("mill", []string{"color"}, []string{"v1"}, publishedTo(label+"=yes"))
		began := time.Now()
		share(ctx, d)
		var serving errgroup.Group
		for _, t := range crowd {
			requests := must(kubernetes.NewForConfig(t.Config)).RESTClient().Get().AbsPath("/apis", sharedGroup, "v1", d.Spec.Names.Plural)
			serving.Go(func() error {
				return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 3*kit.Soon, true, func(ctx context.Context) (bool, error) {
					return requests.Do(ctx).Error() == nil, nil
				})
			})
		}
		Expect(serving.Wait()).To(Succeed())
		AddReportEntry(fmt.Sprintf("served by %d tenants", len(crowd)), time.Since(began))
	}, NodeTimeout(5*time.Minute))

	It("are many, of which a tenant gets as many as it may", func(ctx SpecContext) {
		const label = "example.com/many"
		count := atLength(500, sharedcrds.MaxCRDs+10)
		eager := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { metav1.SetMetaDataLabel(&vc.ObjectMeta, label, "yes") })
		before := must(measure.UsageOf(super.PID())).Resident
		var creating errgroup.Group
		creating.SetLimit(8)
		began := time.Now()
		for i := range count {
			d := sharedDefinition(fmt.Sprintf("m%03d", i), []string{"color"}, []string{"v1"}, publishedTo(label+"=yes"))
			creating.Go(func() error { return super.Client.Create(ctx, d) })
		}
		DeferCleanup(func(ctx SpecContext) {
			for i := range count {
				d := sharedDefinition(fmt.Sprintf("m%03d", i), nil, []string{"v1"})
				Expect(client.IgnoreNotFound(super.Client.Delete(ctx, d))).To(Succeed())
			}
		}, NodeTimeout(recovery))
		Expect(creating.Wait()).To(Succeed())
		AddReportEntry(fmt.Sprintf("%d published", count), time.Since(began))
		served := func() (int, error) {
			list, err := must(discovery.NewDiscoveryClientForConfig(eager.Config)).ServerResourcesForGroupVersion(sharedGroup + "/v1")
			if err != nil {
				return 0, client.IgnoreNotFound(err)
			}
			return len(list.APIResources), nil
		}
		Eventually(served).WithTimeout(2 * recovery).WithPolling(200 * time.Millisecond).Should(Equal(sharedcrds.MaxCRDs))
		AddReportEntry("served", time.Since(began))
		AddReportEntry("MiB of the super cluster with its control planes", float64(must(measure.UsageOf(super.PID())).Resident-before)/measure.MiB)
		Eventually(sharedCondition(ctx, eager)).WithTimeout(2 * kit.Soon).Should(And(
			HavePrefix("False/TooManyCRDs"), ContainSubstring(fmt.Sprintf("%d more CRDs", count-sharedcrds.MaxCRDs))))
	}, NodeTimeout(kit.Longest))

	It("are cert-manager's, with which a tenant works", func(ctx SpecContext) {
		for _, d := range certManagerCRDs.Definitions(ctx, publishedTo(gold)) {
			share(ctx, d)
			Eventually(kit.Read(ctx, red.Client, d)).Should(servedVersions("v1"))
		}
		p := programsOf(ctx, red)
		Eventually(p.apply).WithContext(ctx).WithArguments("issuer", issuer).Should(Succeed())
		Eventually(p.apply).WithContext(ctx).WithArguments("certificate", certificate).Should(Succeed())
		p.does(ctx, "web-tls", "get", "certificate", "web")
		Eventually(p.kubectl).WithContext(ctx).WithArguments("explain", "certificate.spec").Should(ContainSubstring("secretName"), "OpenAPI documents are updated after the CRD is served")
		Expect(p.apply(ctx, "invalid", strings.ReplaceAll(certificate, "RSA", "Perhaps"))).To(MatchError(ContainSubstring("Unsupported value")))

		By("replacing those that another tenant has installed")
		green := tenant(ctx)
		own := certManagerCRDs.Definitions(ctx)
		for _, d := range own {
			kit.Create(ctx, green.Client, d)
		}
		serving(ctx, green, own)
		Eventually(programsOf(ctx, green).apply).WithContext(ctx).WithArguments("issuer", issuer).Should(Succeed(), "discovery is updated after the CRD is established")
		choose(ctx, green, sharedcrds.SystemCRDFirst)
		kit.Edit(ctx, super.Client, green.VC, func(vc *tenancyv1alpha1.VirtualCluster) {
			metav1.SetMetaDataLabel(&vc.ObjectMeta, "example.com/tier", "gold")
		})
		Eventually(sharedCondition(ctx, green)).WithTimeout(2 * kit.Soon).Should(HavePrefix("True/Shared"))
		for _, d := range own {
			Expect(kit.Read(ctx, green.Client, d)()).To(HaveField("Labels", HaveKey(names.SharedCRD)), d.Name)
		}
		Expect(listed(ctx, green, "cert-manager.io/v1", "Issuer")()).To(HaveLen(1))
	})
})
