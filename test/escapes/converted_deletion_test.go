package escapes

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The deletion of a converted tenant", func() {
	attack("to outlive its deletion, by finalizers on all that it has", "idea: a finalizer that nothing removes", func(ctx SpecContext) {
		mallory := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted })
		held := func(ns, name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: ns, Name: name, Finalizers: []string{"example.com/held", "kubernetes.example.com/held"}}
		}
		namespace := &corev1.Namespace{ObjectMeta: held("", "shop")}
		namespace.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes, "example.com/held"}
		Eventually(func() error { return mallory.Client.Create(ctx, namespace.DeepCopy()) }).Should(Succeed(), "the gateway knows it")
		crd := crdOf("held.example.com", nil)
		crd.Finalizers = held("", "").Finalizers
		placed := crd.DeepCopy()
		placed.Name, placed.Spec.Scope = "gadgets.held.example.com", apiextensionsv1.NamespaceScoped
		placed.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget"}
		kit.Create(ctx, mallory.Client, crd, placed,
			&corev1.ConfigMap{ObjectMeta: held("shop", "held")}, &rbacv1.Role{ObjectMeta: held("shop", "held")},
			&rbacv1.ClusterRole{ObjectMeta: held("", "held:all")},
			&rbacv1.ClusterRoleBinding{ObjectMeta: held("", "held"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "held:all"}},
		)
		for kind, ns := range map[string]string{"Widget": "", "Gadget": "shop"} {
			custom := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "held.example.com/v1", "kind": kind}}
			custom.SetNamespace(ns)
			custom.SetName("held")
			custom.SetFinalizers(held("", "").Finalizers)
			Eventually(func() error { return mallory.Client.Create(ctx, custom.DeepCopy()) }).Should(Succeed())
		}
		Expect(super.Client.Delete(ctx, mallory.VC)).To(Succeed())
		// Several controllers take turns, some of them seconds apart.
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, mallory.VC).WithTimeout(4 * kit.Soon).
			Should(MatchError(apierrors.IsNotFound, "not found"))
		left := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(super.Client.List(ctx, left, client.MatchingLabels{names.Converted: mallory.Key()})).To(Succeed())
		Expect(left.Items).To(BeEmpty())
		kit.ShouldVanish(ctx, super.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: mallory.Key()}})
	})
})
