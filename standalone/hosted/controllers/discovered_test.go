package controllers_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/discovered"
)

// widgets returns the definition of a custom resource.
func widgets(kind string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// TestDiscoveredAPIs: control planes without APIs of their own share what their
// controllers discover. One with a custom resource or an aggregated API has its
// own, which no other sees, until it has deleted these.
func TestDiscoveredAPIs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := newHost(t)
	shared := discovered.NewShared()
	clients, mappers := map[string]*discovered.Client{}, map[string]*discovered.Mapper{}
	tenants := map[string]*tenant{}
	for _, name := range []string{"red", "blue", "green", "plain"} {
		tenants[name] = h.add(t, name)
		client, err := discovered.NewClient(tenants[name].config, tenants[name].client.Discovery(), shared)
		g.Expect(err).NotTo(HaveOccurred())
		clients[name], mappers[name] = client, discovered.NewMapper(client)
	}
	apis := func(g Gomega, name string) *discovered.APIs {
		found, err := clients[name].APIs()
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	kind := func(name string) string {
		mappers[name].Reset()
		found, err := mappers[name].KindFor(schema.GroupVersionResource{Group: "example.com", Resource: "widgets"})
		if err != nil {
			return ""
		}
		return found.Kind
	}
	for name := range tenants {
		g.Expect(apis(g, name)).To(BeIdenticalTo(apis(g, "plain")), name)
	}

	definitions := func(name string) typed.CustomResourceDefinitionInterface {
		client, err := apiextensions.NewForConfig(tenants[name].config)
		g.Expect(err).NotTo(HaveOccurred())
		return client.ApiextensionsV1().CustomResourceDefinitions()
	}
	for name, of := range map[string]string{"red": "Widget", "blue": "Gadget"} {
		_, err := definitions(name).Create(t.Context(), widgets(of), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	remote, err := aggregator.NewForConfig(tenants["green"].config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = remote.ApiregistrationV1().APIServices().Create(t.Context(), &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.example.net"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "example.net", Version: "v1", GroupPriorityMinimum: 1000, VersionPriority: 10, InsecureSkipTLSVerify: true,
			Service: &apiregistrationv1.ServiceReference{Namespace: corev1.NamespaceDefault, Name: "missing"},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		g.Expect(kind("red")).To(Equal("Widget"))
		g.Expect(kind("blue")).To(Equal("Gadget"))
		g.Expect(apis(g, "green")).NotTo(BeIdenticalTo(apis(g, "plain")))
	}, later).Should(Succeed())
	g.Expect(kind("green")).To(BeEmpty())
	g.Expect(kind("plain")).To(BeEmpty())
	groups, err := clients["plain"].ServerPreferredResources()
	g.Expect(err).NotTo(HaveOccurred(), "it has no group that does not respond")
	for _, each := range groups {
		g.Expect(each.GroupVersion).NotTo(HavePrefix("example."))
	}

	for _, name := range []string{"red", "blue"} {
		g.Expect(definitions(name).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{})).To(Succeed())
	}
	g.Expect(remote.ApiregistrationV1().APIServices().Delete(t.Context(), "v1.example.net", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func(g Gomega) {
		for name := range tenants {
			g.Expect(apis(g, name)).To(BeIdenticalTo(apis(g, "plain")), name)
			g.Expect(kind(name)).To(BeEmpty())
		}
	}, later).Should(Succeed())
}
