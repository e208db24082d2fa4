package escapes

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// sharedTo selects the tenants of one spec.
const sharedTo = "escapes.example.com/shared"

// gadgets returns a CRD whose objects have the field color.
func gadgets(plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".escapes.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "escapes.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}},
				}},
			}},
		},
	}
}

// sharedWith publishes a CRD to the tenants of a spec.
func sharedWith(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, spec string, forced bool) {
	GinkgoHelper()
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, names.ApplicableRange, sharedTo+"="+spec)
	if forced {
		metav1.SetMetaDataLabel(&d.ObjectMeta, names.CRDSharingPolicy, names.Forced)
	}
	kit.Create(ctx, super.Client, d)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, d))).To(Succeed()) })
}

// sharer returns a change of a VirtualCluster by which a CRD reaches it.
func sharer(spec string) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) { metav1.SetMetaDataLabel(&vc.ObjectMeta, sharedTo, spec) }
}

// recorded returns the CRDs of a tenant that the syncer has recorded.
func recorded(ctx context.Context, t *local.Tenant) func() (map[string]any, error) {
	return func() (map[string]any, error) {
		found, all := &corev1.Secret{}, map[string]any{}
		err := super.Client.Get(ctx, client.ObjectKey{Namespace: t.Key(), Name: names.SharedCRDsSecret}, found)
		if client.IgnoreNotFound(err) != nil || err != nil {
			return all, client.IgnoreNotFound(err)
		}
		return all, json.Unmarshal(found.Data["crds"], &all)
	}
}

var _ = Describe("Shared CRDs", func() {
	attack("a CRD of the tenant's own with the label of a shared one", "idea: the syncer would delete what it seems to have made",
		func(ctx SpecContext) {
			mallory := tenant(ctx, sharer("forged"))
			other := gadgets("others")
			sharedWith(ctx, other, "forged", false)
			kit.ShouldExist(ctx, mallory.Client, other.DeepCopy())
			copied := other.DeepCopy()
			Expect(kit.Get(ctx, mallory.Client, copied)).To(Succeed())

			own := gadgets("owns")
			own.Labels = map[string]string{names.SharedCRD: copied.Labels[names.SharedCRD]}
			own.Annotations = map[string]string{names.ApplicableRange: names.AllTenants}
			metav1.SetMetaDataLabel(&own.ObjectMeta, names.CRDSharingPolicy, names.Forced)
			kit.Create(ctx, mallory.Client, own)
			Consistently(kit.Get).WithContext(ctx).WithArguments(mallory.Client, own).Should(Succeed())
			Expect(own.DeletionTimestamp).To(BeNil())
			Expect(recorded(ctx, mallory)()).NotTo(HaveKey(own.Name))
		})

	attack("a Secret of the tenant with the name of the records", "idea: a record that the tenant writes", func(ctx SpecContext) {
		mallory := tenant(ctx, sharer("records"))
		own := gadgets("recordeds")
		kit.Create(ctx, mallory.Client, own)
		content := fmt.Sprintf(`{%q:{"phase":"Left","uid":%q,"mark":"x"}}`, own.Name, own.UID)
		for _, ns := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
			kit.Create(ctx, mallory.Client, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: names.SharedCRDsSecret}, StringData: map[string]string{"crds": content},
			})
		}
		sharedWith(ctx, gadgets("nudges"), "records", false)
		kit.ShouldExist(ctx, mallory.Client, gadgets("nudges"))
		found := own.DeepCopy()
		Expect(kit.Get(ctx, mallory.Client, found)).To(Succeed())
		Expect(found.Spec.Versions[0].Served).To(BeTrue())
		Expect(recorded(ctx, mallory)()).NotTo(HaveKey(own.Name))
	})

	attack("a forced copy that is edited and deleted in a loop", "idea: another tenant's CRDs wait", func(ctx SpecContext) {
		mallory, alice := tenant(ctx, sharer("loop")), tenant(ctx, sharer("loop"))
		d := gadgets("loops")
		sharedWith(ctx, d, "loop", true)
		kit.ShouldExist(ctx, mallory.Client, d.DeepCopy())
		looping, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; looping.Err() == nil; i++ {
				found := d.DeepCopy()
				if kit.Get(looping, mallory.Client, found) != nil {
					continue
				}
				found.Labels, found.Spec.Names.ShortNames = nil, []string{fmt.Sprintf("s%d", i)}
				_ = mallory.Client.Update(looping, found) // the syncer may be faster
				if i%10 == 0 {
					_ = mallory.Client.Delete(looping, found)
				}
			}
		}()
		next := gadgets("nexts")
		sharedWith(ctx, next, "loop", false)
		kit.ShouldExist(ctx, alice.Client, next.DeepCopy())
		end()
		<-ended
		Eventually(kit.Read(ctx, mallory.Client, d)).WithTimeout(2 * kit.Soon).Should(And(
			HaveField("Labels", HaveKey(names.SharedCRD)), HaveField("Spec.Names.ShortNames", BeEmpty())))
	})

	attack("a copy that is swapped for a CRD of the tenant's own before it is recalled", "idea: the syncer deletes by name", func(ctx SpecContext) {
		mallory := tenant(ctx, sharer("swap"))
		d := gadgets("swaps")
		sharedWith(ctx, d, "swap", false)
		copied := d.DeepCopy()
		kit.ShouldExist(ctx, mallory.Client, copied)
		Expect(super.Client.Delete(ctx, d)).To(Succeed())
		Expect(client.IgnoreNotFound(mallory.Client.Delete(ctx, copied))).To(Succeed())
		own := gadgets("swaps")
		own.Labels = map[string]string{names.SharedCRD: copied.Labels[names.SharedCRD]}
		Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(own).Should(Succeed())
		Eventually(recorded(ctx, mallory)).WithTimeout(2 * kit.Soon).ShouldNot(HaveKey(d.Name))
		Consistently(kit.Read(ctx, mallory.Client, own)).Should(And(
			HaveField("UID", own.UID), HaveField("DeletionTimestamp", BeNil()), HaveField("Spec.Versions", HaveEach(HaveField("Served", true)))))
	})
})
