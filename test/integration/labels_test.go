package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// unlabelled returns the objects in the namespaces of a tenant that the selector
// of its labels does not find, except for what controllers of the super cluster
// create in each namespace, and how many it finds.
func unlabelled(ctx context.Context, t *local.Tenant) (missing []string, found int) {
	GinkgoHelper()
	of := labels.SelectorFromSet(names.OwnerLabels(t.VC))
	namespaces := &corev1.NamespaceList{}
	Expect(super.Client.List(ctx, namespaces)).To(Succeed())
	own := map[string]bool{}
	for i := range namespaces.Items {
		ns := &namespaces.Items[i]
		own[ns.Name] = ns.Annotations[names.VCUID] == string(t.VC.UID)
	}
	Expect(local.EachObject(ctx, super.Config, func(kind schema.GroupVersionResource, obj *unstructured.Unstructured) {
		isNamespace := kind.Resource == "namespaces" && own[obj.GetName()]
		switch {
		case !own[obj.GetNamespace()] && !isNamespace || isOfSuper(kind, obj):
		case of.Matches(labels.Set(obj.GetLabels())):
			found++
		default:
			missing = append(missing, kind.GroupResource().String()+" "+obj.GetNamespace()+"/"+obj.GetName())
		}
	})).To(Succeed())
	return missing, found
}

// isOfSuper reports whether a controller of the super cluster has created an
// object in a namespace of a tenant.
func isOfSuper(kind schema.GroupVersionResource, obj *unstructured.Unstructured) bool {
	switch kind.Resource {
	case "events":
		return true
	case "configmaps":
		return obj.GetName() == "kube-root-ca.crt"
	case "serviceaccounts":
		return obj.GetName() == "default"
	case "resourceclaims":
		return obj.GetAnnotations()[resourcev1.PodResourceClaimAnnotation] != ""
	}
	return false
}

var _ = Describe("The labels of a project", func() {
	It("are on each of its objects in the super cluster, of each kind", func(ctx SpecContext) {
		red := tenant(ctx)
		made := populate(ctx, red, offerAll(ctx, 4), "labelled", 1)
		shouldBePopulated(ctx, red)
		Eventually(func() []string {
			missing, found := unlabelled(ctx, red)
			Expect(found).To(BeNumerically(">", made))
			return missing
		}).WithTimeout(kit.Soon).Should(BeEmpty())
	}, SpecTimeout(kit.Longest))
})
