package escapes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("What a converted tenant stores", Ordered, ContinueOnFailure, func() {
	const (
		ns   = "default"
		most = 1 << 20
	)
	var (
		mallory *local.Tenant
		stolen  client.Client // with the token of mallory's service account of the super cluster
		widgets schema.GroupVersionKind
		restart func() // of vc-syncer
	)
	large := strings.Repeat("x", 200<<10)
	named := func(format string, a ...any) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf(format, a...)}
	}
	// shouldHold checks the limits in the super cluster, with some room for the
	// statuses that controllers write.
	shouldHold := func(ctx context.Context) {
		GinkgoHelper()
		objects, bytes := kit.Stored(ctx, super, mallory.Key(), widgets)
		Expect(objects).To(BeNumerically("<=", 200))
		Expect(bytes).To(BeNumerically("<=", most+(64<<10)))
	}

	BeforeAll(func(ctx SpecContext) {
		restart = startConvertedWebhook(ctx)
		mallory = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Limits: &tenancyv1alpha1.ControlPlaneLimits{
				Objects: new(int64(200)), Storage: new(resource.MustParse("1Mi")),
			}}
		})
		Eventually(func() error { return mallory.Client.List(ctx, &corev1.PodList{}) }).Should(Succeed())
		var err error
		stolen, err = local.NewClient(stolenFrom(ctx, mallory))
		Expect(err).NotTo(HaveOccurred())
		widgets = schema.GroupVersionKind{Group: names.ConvertedGroup(mallory.Key()) + "example.com", Version: "v1", Kind: "Widget"}
		Eventually(func() error { return mallory.Client.Create(ctx, crdOf("example.com", nil)) }).Should(Succeed())
	})

	attack("more bytes than the limit, in objects of all kinds at once, large from the beginning or made large", "idea: each kind has a limit, and all together have none", func(ctx SpecContext) {
		custom := func(i int) client.Object {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": large}}}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
			o.SetName(fmt.Sprintf("w-%d", i))
			return o
		}
		makers := []func(int) client.Object{
			custom,
			func(i int) client.Object {
				return &corev1.ConfigMap{ObjectMeta: named("c-%d", i), Data: map[string]string{"a": large}}
			},
			func(i int) client.Object {
				return &corev1.Secret{ObjectMeta: named("s-%d", i), StringData: map[string]string{"a": large}}
			},
			func(i int) client.Object {
				return &coordinationv1.Lease{ObjectMeta: named("l-%d", i), Spec: coordinationv1.LeaseSpec{HolderIdentity: &large}}
			},
			func(i int) client.Object {
				return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("r-%d", i), Annotations: map[string]string{"a": large}}}
			},
			func(i int) client.Object {
				return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%d", i)}, Description: large}
			},
		}
		var all sync.WaitGroup
		for _, maker := range makers {
			all.Go(func() {
				for i := range 5 {
					object := maker(i)
					if mallory.Client.Create(ctx, object) == nil {
						continue
					}
					object = maker(i)
					object.SetAnnotations(nil)
					small := object.DeepCopyObject().(client.Object)
					switch o := small.(type) {
					case *corev1.ConfigMap:
						o.Data = nil
					case *coordinationv1.Lease:
						o.Spec.HolderIdentity = nil
					}
					if mallory.Client.Create(ctx, small) != nil {
						continue
					}
					grown := maker(i)
					grown.SetResourceVersion(small.GetResourceVersion())
					_ = mallory.Client.Update(ctx, grown)
					_ = mallory.Client.Patch(ctx, small, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"b":"`+large+`"}}}`)))
				}
			})
		}
		all.Wait()
		shouldHold(ctx)
	})

	attack("more objects than the limit, with the stolen token, in the namespaces and in the root namespace", "idea: who does not go through the gateway is not counted", func(ctx SpecContext) {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 60 {
					role := &unstructured.Unstructured{Object: map[string]any{"rules": []any{}}}
					role.SetAPIVersion("shelved.tenancy.x-k8s.io/v1")
					role.SetKind("ClusterRole")
					role.SetNamespace(mallory.Key())
					role.SetName(fmt.Sprintf("stolen-%d-%d", i, n))
					_ = stolen.Create(ctx, role)
					config := &corev1.ConfigMap{ObjectMeta: named("stolen-%d-%d", i, n)}
					config.Namespace, config.Labels = mallory.Super(ns), map[string]string{names.Converted: "another"}
					_ = stolen.Create(ctx, config)
				}
			})
		}
		all.Wait()
		shouldHold(ctx)
		Expect(stolen.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Super(ns), Name: "one-more"}})).NotTo(Succeed())
	})

	attack("more objects than the limit, by a controller that keeps each revision", "idea: what the tenant does not write itself is not limited", func(ctx SpecContext) {
		for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &coordinationv1.Lease{}} {
			Expect(mallory.Client.DeleteAllOf(ctx, kind, client.InNamespace(ns))).To(Succeed())
		}
		for _, kind := range []client.Object{&rbacv1.ClusterRole{}, &schedulingv1.PriorityClass{}} {
			Expect(mallory.Client.DeleteAllOf(ctx, kind)).To(Succeed())
		}
		web := &appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), RevisionHistoryLimit: new(int32(1 << 30)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: kit.Pod(ns, "a").Spec},
		}}
		Eventually(func() error { return mallory.Client.Create(ctx, web.DeepCopy()) }).Should(Succeed())
		for i := range 30 {
			patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"a":"%d%s"}}}}}`, i, large[:100<<10])
			_ = mallory.Client.Patch(ctx, web.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
		}
		Consistently(func(g Gomega) {
			_, bytes := kit.Stored(ctx, super, mallory.Key(), widgets)
			g.Expect(bytes).To(BeNumerically("<=", most+(64<<10)))
		}).Should(Succeed())
	})

	attack("more bytes than the limit, in objects that are being deleted, and that a finalizer keeps", "idea: what is deleted can always be finalized", func(ctx SpecContext) {
		Expect(mallory.Client.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(ns))).To(Succeed())
		for _, kind := range []client.Object{&appsv1.ReplicaSet{}, &corev1.ConfigMap{}} {
			Expect(mallory.Client.DeleteAllOf(ctx, kind, client.InNamespace(ns))).To(Succeed())
		}
		widget := &unstructured.Unstructured{}
		widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
		Expect(mallory.Client.DeleteAllOf(ctx, widget)).To(Succeed())
		var held []client.Object
		for i := range 6 {
			custom := widget.DeepCopy()
			custom.SetName(fmt.Sprintf("held-%d", i))
			held = append(held, custom, &corev1.ConfigMap{ObjectMeta: named("held-%d", i)},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("held-%d", i)}})
		}
		for _, object := range held {
			object.SetFinalizers([]string{"example.com/first", "example.com/second"})
			Eventually(func() error { return mallory.Client.Create(ctx, object) }).WithContext(ctx).Should(Succeed())
			Expect(mallory.Client.Delete(ctx, object)).To(Succeed())
		}
		patch := func(object client.Object, body string) error {
			return mallory.Client.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(body)))
		}
		rejected := 0
		for _, object := range held {
			if patch(object, `{"metadata":{"annotations":{"a":"`+large+`"}}}`) != nil {
				rejected++
			}
		}
		Expect(rejected).To(BeNumerically(">", len(held)/2))
		shouldHold(ctx)
		for _, object := range held {
			Expect(patch(object, `{"metadata":{"finalizers":["example.com/second"]}}`)).To(Succeed())
			Expect(patch(object, `{"metadata":{"annotations":{"b":"a write with the last finalizer"},"finalizers":null}}`)).To(Succeed())
			kit.ShouldVanish(ctx, mallory.Client, object)
		}
	}, NodeTimeout(6*time.Minute))

	attack("custom resources that are not counted, of a CRD without a served version", "idea: what is not served is not counted, and stays", func(ctx SpecContext) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(mallory.Client.Get(ctx, client.ObjectKey{Name: "widgets.example.com"}, crd)).To(Succeed())
		crd.Spec.Versions[0].Served = false
		Expect(mallory.Client.Update(ctx, crd)).To(MatchError(ContainSubstring("no version of the CRD is served")))
	})

	attack("more bytes than the limit, by a schema that hides what is stored, and a restart of vc-syncer", "review: objects are pruned when they are read", func(ctx SpecContext) {
		thief := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner, vc.Spec.ControlPlane = mallory.VC.Spec.Provisioner, mallory.VC.Spec.ControlPlane
		})
		crd := crdOf("hidden.example.com", nil)
		schemaOf := func(crd *apiextensionsv1.CustomResourceDefinition, fields ...string) {
			spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
			for _, field := range fields {
				spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			}
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}
		}
		change := func(fields ...string) {
			kit.Edit(ctx, thief.Client, crd, func(crd *apiextensionsv1.CustomResourceDefinition) { schemaOf(crd, fields...) })
		}
		widget := func() *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": large}}}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1", Kind: "Widget"})
			o.SetGenerateName("w-")
			return o
		}
		full := MatchError(ContainSubstring("are allowed: delete some"))
		create := func() error { return thief.Client.Create(ctx, widget()) }
		gvk := schema.GroupVersionKind{Group: names.ConvertedGroup(thief.Key()) + crd.Spec.Group, Version: "v1", Kind: "Widget"}
		bytes := func() int {
			_, bytes := kit.Stored(ctx, super, thief.Key(), gvk)
			return bytes
		}
		schemaOf(crd, "a")
		Eventually(func() error { return thief.Client.Create(ctx, crd.DeepCopy()) }).Should(Succeed())
		Eventually(create).WithTimeout(time.Minute).Should(full)
		Expect(bytes()).To(And(BeNumerically(">", most/2), BeNumerically("<=", most+(64<<10))))

		change("b")
		Eventually(bytes).WithTimeout(time.Minute).Should(BeNumerically("<", most/2), "what is stored is hidden")
		change("a", "c")
		Eventually(bytes).WithTimeout(time.Minute).Should(BeNumerically(">", most/2))
		Expect(create()).To(full, "the sizes at the time of the writes count")

		change("b")
		Eventually(bytes).WithTimeout(time.Minute).Should(BeNumerically("<", most/2))
		restart()
		change("a", "c")
		Eventually(create).WithTimeout(time.Minute).Should(full)
		Eventually(bytes).WithTimeout(time.Minute).Should(BeNumerically(">", most))
		Expect(bytes()).To(BeNumerically("<=", 2*most+(128<<10)), "once more for each restart")
		restart()
		Consistently(create).ShouldNot(Succeed(), "what can be read counts")
	})
})
