package hosted_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func widgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgets.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

// customResourcesAreCollected makes a widget that a config map owns, and sees
// it go with its owner.
func customResourcesAreCollected(t *testing.T, client kubernetes.Interface, plane *hosted.ControlPlane) {
	t.Parallel()
	g := NewWithT(t)
	definitions, err := apiextensions.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), widgetDefinition(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	makeConfigMap(t, client, "owner", "")
	owner, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "owner", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
	widget.SetName("owned")
	widget.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}})

	dynamicClient, err := dynamic.NewForConfig(plane.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	resources := dynamicClient.Resource(widgets).Namespace("default")
	g.Eventually(func() error {
		_, err := resources.Create(t.Context(), widget, metav1.CreateOptions{})
		return err
	}).WithTimeout(soon).WithPolling(tick).Should(Succeed())

	g.Expect(client.CoreV1().ConfigMaps("default").Delete(t.Context(), "owner", metav1.DeleteOptions{})).To(Succeed())
	// The collector discovers new resources from time to time.
	g.Eventually(func() error {
		_, err := resources.Get(t.Context(), "owned", metav1.GetOptions{})
		return err
	}).WithTimeout(2 * later).WithPolling(tick).Should(Satisfy(apierrors.IsNotFound))
}
