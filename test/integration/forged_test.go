package integration

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// with returns a map with the entries of both; more takes precedence.
func with(m, more map[string]string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, more)
	return m
}

// beOf matches the annotations of a tenant's copy.
func beOf(t *local.Tenant) gomegatypes.GomegaMatcher {
	return And(
		HaveKeyWithValue(names.Cluster, t.Key()), HaveKeyWithValue(names.VCName, t.VC.Name),
		HaveKeyWithValue(names.VCNamespace, t.VC.Namespace), HaveKeyWithValue(names.UID, Not(Equal("forged"))))
}

// stamps returns the annotations of all copies in a namespace of the super
// cluster.
func stamps(ctx context.Context, ns string) []map[string]string {
	GinkgoHelper()
	var all []map[string]string
	Expect(local.EachObject(ctx, super.Config, func(_ schema.GroupVersionResource, obj *unstructured.Unstructured) {
		if annotations := obj.GetAnnotations(); obj.GetNamespace() == ns && annotations[names.UID] != "" {
			all = append(all, annotations)
		}
	})).To(Succeed())
	return all
}

// versions returns the resource versions of a namespace of the super cluster
// and all its objects.
func versions(ctx context.Context, ns string) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	Expect(local.EachObject(ctx, super.Config, func(of schema.GroupVersionResource, obj *unstructured.Unstructured) {
		if obj.GetNamespace() == ns || obj.GetName() == ns {
			all[of.String()+" "+obj.GetName()] = obj.GetResourceVersion()
		}
	})).To(Succeed())
	return all
}

// settledVersions returns the same as soon as they stay: controllers have work for
// a while after a pod runs.
func settledVersions(ctx context.Context, ns string) (all map[string]string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		all = versions(ctx, ns)
		g.Consistently(versions).WithContext(ctx).WithArguments(ns).Should(Equal(all))
	}).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	return all
}

// A tenant may write any label and annotation in its own cluster, including
// VirtualCluster's. None of them may make an object another tenant's, the
// platform's, or unmanaged.
var _ = Describe("A tenant that forges VirtualCluster's labels and annotations", Ordered, func() {
	const ns = "forged"
	var (
		red, blue *local.Tenant
		o         offer
	)

	// forge sets all metadata that would make an object the other tenant's.
	forge := func(obj client.Object) {
		obj.SetLabels(with(obj.GetLabels(), map[string]string{
			names.VCName: blue.VC.Name, names.VCNamespace: blue.VC.Namespace, names.Public: "true",
			"pod-security.kubernetes.io/enforce": "privileged",
		}))
		obj.SetAnnotations(with(obj.GetAnnotations(), map[string]string{
			names.VCName: blue.VC.Name, names.VCNamespace: blue.VC.Namespace, names.VCUID: string(blue.VC.UID),
			names.Cluster: blue.Key(), names.UID: "forged", names.Namespace: "default",
			names.Labels: names.VCName + ",app.kubernetes.io/name", names.Annotations: names.Cluster + "," + names.VCUID,
			names.OwnerReferences: "[]",
		}))
	}

	BeforeAll(func(ctx SpecContext) {
		allowCustom(ctx)
		kit.Create(ctx, super.Client, definition(gears))
		DeferCleanup(func(ctx SpecContext) { undefine(ctx, gears) })
		o = offerAll(ctx, 4)
		red, blue = tenant(ctx, withCustom(tenancyv1alpha1.SyncDown, gears)), tenant(ctx)
		kit.Create(ctx, blue.Client, kit.Namespace(ns), service(ns, "x00"), kit.Pod(ns, "x00"))
		Eventually(running).WithContext(ctx).WithArguments(blue.Client, ns).Should(ConsistOf("x00"))
	})

	It("has objects of every kind synced as its own, without touching another tenant's", func(ctx SpecContext) {
		before := settledVersions(ctx, blue.Super(ns))
		populate(ctx, red, o, ns, 1, forge)
		shouldBeServed(ctx, red, gears, ns)
		gear := custom(gears, ns, "x00", "red")
		forge(gear)
		kit.Create(ctx, red.Client, gear)
		shouldBePopulated(ctx, red)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, gear))

		Expect(stamps(ctx, red.Super(ns))).To(HaveEach(beOf(red)))
		down := kit.SuperOf(red, kit.Namespace(ns))
		Expect(kit.Get(ctx, super.Client, down)).To(Succeed())
		Expect(down).To(And(
			WithTransform(client.Object.GetAnnotations, And(beOf(red), HaveKeyWithValue(names.VCUID, string(red.VC.UID)))),
			WithTransform(client.Object.GetLabels, HaveKeyWithValue("pod-security.kubernetes.io/enforce", "baseline"))))
		Expect(versions(ctx, blue.Super(ns))).To(Equal(before))
	})

	It("cannot forge the metadata of copies later", func(ctx SpecContext) {
		svc, in := service(ns, "late"), kit.Namespace(ns)
		kit.Create(ctx, red.Client, svc)
		down := kit.SuperOf(red, svc)
		kit.ShouldExist(ctx, super.Client, down)
		kit.Edit(ctx, red.Client, svc, func(s *corev1.Service) {
			forge(s)
			s.Spec.Selector = map[string]string{"now": "forged"}
		})
		kit.Edit(ctx, red.Client, in, func(n *corev1.Namespace) { forge(n); n.Labels["now"] = "forged" })
		Eventually(kit.Read(ctx, super.Client, down)).Should(HaveField("Spec.Selector", HaveKey("now")))
		Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, in))).Should(HaveField("Labels", HaveKeyWithValue(names.Label("now"), "forged")))
		Expect(stamps(ctx, red.Super(ns))).To(HaveEach(beOf(red)))
	})

	It("deletes only its own objects", func(ctx SpecContext) {
		before := settledVersions(ctx, blue.Super(ns))
		Expect(red.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed())
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, kit.Namespace(ns))).WithTimeout(4 * kit.Soon).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		Expect(versions(ctx, blue.Super(ns))).To(Equal(before))
		Expect(running(ctx, blue.Client, ns)).To(ConsistOf("x00"))
	})

	It("cannot pass its own classes off as the super cluster's to other tenants", func(ctx SpecContext) {
		class := storageClass(ctx)
		own := class.DeepCopy()
		own.ObjectMeta = metav1.ObjectMeta{Name: "own-" + red.VC.Name}
		forge(own)
		own.Labels[names.FromSuper] = "true"
		kit.Create(ctx, red.Client, own)
		settle(ctx)
		for _, c := range []client.Client{super.Client, blue.Client} {
			Expect(kit.Get(ctx, c, own.DeepCopy())).NotTo(Succeed())
		}
	})
})
