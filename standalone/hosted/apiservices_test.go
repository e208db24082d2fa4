package hosted_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestAPIServices: a handler chain has the APIServices of kube-apiserver, those
// of custom resources included.
func TestAPIServices(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	upstream := apiServicesOf(t, runReady(t, shared, hosted.Spec{Name: "apis-stock", Stock: true}))
	g.Eventually(upstream).WithTimeout(soon).WithPolling(tick).Should(
		And(HaveKey("v1.example.com"), HaveEach(HaveField("Status.Conditions", Not(BeEmpty())))))
	want := upstream()
	for name, spec := range map[string]hosted.Spec{"shared": {Name: "apis-shared", Shared: true}, "dedicated": {Name: "apis-own"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got := apiServicesOf(t, runReady(t, shared, spec))
			g.Eventually(got).WithTimeout(soon).WithPolling(tick).Should(Equal(want))
		})
	}
}

// apiServicesOf defines a custom resource, and returns what lists the APIServices
// of a control plane by name, with what does not differ between clusters.
func apiServicesOf(t *testing.T, plane *hosted.ControlPlane) func() map[string]apiregistrationv1.APIService {
	t.Helper()
	definitions, err := apiextensions.NewForConfig(plane.RESTConfig())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), widgetDefinition(), metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	client, err := clientset.NewForConfig(plane.RESTConfig())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return func() map[string]apiregistrationv1.APIService {
		list, err := client.ApiregistrationV1().APIServices().List(t.Context(), metav1.ListOptions{})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		found := map[string]apiregistrationv1.APIService{}
		for _, each := range list.Items {
			for i := range each.Status.Conditions {
				each.Status.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			each.ObjectMeta = metav1.ObjectMeta{Labels: each.Labels}
			found[each.Spec.Version+"."+each.Spec.Group] = each
		}
		return found
	}
}
