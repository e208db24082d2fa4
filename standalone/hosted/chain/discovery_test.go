package chain_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// resourcesOf returns the lists of resources of a tenant by version.
func resourcesOf(t *testing.T, tenant *chain.Tenant, legacy bool) map[string]*metav1.APIResourceList {
	t.Helper()
	g := NewWithT(t)
	client, err := discovery.NewDiscoveryClientForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	client.UseLegacyDiscovery = legacy
	_, lists, err := client.ServerGroupsAndResources()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		found[list.GroupVersion] = list
	}
	return found
}

func names(list *metav1.APIResourceList) []string {
	found := make([]string, 0, len(list.APIResources))
	for _, each := range list.APIResources {
		found = append(found, each.Name)
	}
	return found
}

// TestDiscoveryByTenant: each form of discovery has the built-in groups, and the
// custom ones of the tenant only.
func TestDiscoveryByTenant(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	blue, _ := addTeam(t, c, "blue")
	define(t, red, definitionOf("size", "integer"))
	define(t, blue, gadgetDefinition("example.org", "v1beta1", "v1"))
	for _, legacy := range []bool{false, true} {
		of, others := resourcesOf(t, red, legacy), resourcesOf(t, blue, legacy)
		g.Expect(of).To(And(HaveKey("v1"), HaveKey("apps/v1"), HaveKey("apiextensions.k8s.io/v1"), HaveKey("example.com/v1")))
		g.Expect(of).NotTo(HaveKey("example.org/v1"))
		g.Expect(others).To(And(HaveKey("v1"), HaveKey("example.org/v1"), HaveKey("example.org/v1beta1")))
		g.Expect(others).NotTo(HaveKey("example.com/v1"))
		g.Expect(names(of["example.com/v1"])).To(ConsistOf("widgets", "widgets/status", "widgets/scale"))
		g.Expect(names(of["apps/v1"])).To(ContainElement("deployments"))
	}
	list := resourcesOf(t, red, true)["example.com/v1"]
	g.Expect(list.APIResources[0]).To(And(HaveField("Name", "widgets"), HaveField("Group", ""), HaveField("StorageVersionHash", Not(BeEmpty()))))

	client := definitionsOf(t, blue)
	groups, err := client.Discovery().ServerGroups()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(groups.Groups[len(groups.Groups)-1]).To(HaveField("PreferredVersion.Version", "v1"), "custom groups are last, stable versions first")
	var group metav1.APIGroup
	g.Expect(client.Discovery().RESTClient().Get().AbsPath("/apis/example.org").Do(t.Context()).Into(&group)).To(Succeed())
	g.Expect(group.Versions).To(HaveLen(2))
	for _, path := range []string{"/apis/example.com", "/apis/example.com/v1", "/apis/example.org/v2", "/apis/example.org/v1/gadgets/x/y/z"} {
		err := client.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Error()
		g.Expect(err).To(HaveOccurred(), path)
	}
}

// TestDiscoveryWithoutDaemonSets: a tenant that cannot create DaemonSets sees no
// such verb in any form of discovery, whether or not it has added APIs, and
// another tenant of the chain does.
func TestDiscoveryWithoutDaemonSets(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := add(t, c, "red", func(s *chain.Spec) { s.NoDaemonSets = true })
	blue, _ := add(t, c, "blue")
	verbs := func(tenant *chain.Tenant, legacy bool, resource string) []string {
		list := resourcesOf(t, tenant, legacy)["apps/v1"]
		return list.APIResources[slices.Index(names(list), resource)].Verbs
	}
	check := func() {
		for _, legacy := range []bool{false, true} {
			g.Expect(verbs(red, legacy, "daemonsets")).To(ConsistOf("delete", "deletecollection", "get", "list", "patch", "update", "watch"))
			g.Expect(verbs(blue, legacy, "daemonsets")).To(ContainElement("create"))
			g.Expect(verbs(red, legacy, "deployments")).To(ContainElement("create"))
		}
	}
	check()
	define(t, red, definitionOf("size", "integer"))
	check()
	g.Expect(resourcesOf(t, red, false)).To(HaveKey("example.com/v1"))
}

// gadgetDefinition returns a definition of gadgets in a group. The last version
// is that of the storage.
func gadgetDefinition(group string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	definition := definitionOf("size", "integer")
	definition.Name = "gadgets." + group
	definition.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, a test"}
	definition.Spec.Group = group
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList",
	}
	first := definition.Spec.Versions[0]
	definition.Spec.Versions = nil
	for i, name := range versions {
		version := *first.DeepCopy()
		version.Name, version.Storage = name, i == len(versions)-1
		definition.Spec.Versions = append(definition.Spec.Versions, version)
	}
	return definition
}

// TestSharedGroup: custom resources in a group of built-in ones.
func TestSharedGroup(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	blue, _ := addTeam(t, c, "blue")
	define(t, red, gadgetDefinition("networking.k8s.io", "v7", "v1"))
	for _, legacy := range []bool{false, true} {
		found := resourcesOf(t, red, legacy)
		g.Expect(names(found["networking.k8s.io/v7"])).To(ContainElement("gadgets"))
		g.Expect(names(found["networking.k8s.io/v1"])).To(And(ContainElement("ingresses"), Not(ContainElement("gadgets"))),
			"a version that is built in is not that of custom resources")
		g.Expect(resourcesOf(t, blue, legacy)).NotTo(HaveKey("networking.k8s.io/v7"))
	}
	var group metav1.APIGroup
	client := definitionsOf(t, red).Discovery().RESTClient()
	g.Expect(client.Get().AbsPath("/apis/networking.k8s.io/v7/namespaces/team/gadgets").Do(t.Context()).Error()).NotTo(HaveOccurred())
	g.Expect(client.Get().AbsPath("/apis/networking.k8s.io/v8").Do(t.Context()).Error()).To(HaveOccurred())
	g.Expect(client.Get().AbsPath("/apis/networking.k8s.io").Do(t.Context()).Into(&group)).To(Succeed())
	g.Expect(group.Versions).To(ContainElements(HaveField("Version", "v7"), HaveField("Version", "v1")))
	g.Expect(client.Get().AbsPath("/apis/apps").Do(t.Context()).Into(&group)).To(Succeed())
	g.Expect(group.Name).To(Equal("apps"))
}

// fetch sends a request of the control plane itself, and returns the response.
func fetch(t *testing.T, tenant *chain.Tenant, path string, header http.Header) *http.Response {
	t.Helper()
	g := NewWithT(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tenant.Config().Host+path, nil)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header = header
	response, err := tenant.Config().Transport.RoundTrip(request)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// TestDiscoveryTags: a client that knows the groups does not get them again,
// until they change.
func TestDiscoveryTags(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	plain, _ := addTeam(t, c, "plain")
	define(t, red, definitionOf("size", "integer"))
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	first := fetch(t, red, "/apis", http.Header{"Accept": {accept}})
	g.Expect(first.StatusCode).To(Equal(http.StatusOK))
	g.Expect(first.Header.Get("Content-Type")).To(ContainSubstring("v=v2"))
	tag := first.Header.Get("ETag")
	g.Expect(tag).NotTo(BeEmpty())
	g.Expect(fetch(t, red, "/apis", http.Header{"Accept": {accept}, "If-None-Match": {tag}}).StatusCode).To(Equal(http.StatusNotModified))
	g.Expect(fetch(t, plain, "/apis", http.Header{"Accept": {accept}, "If-None-Match": {tag}}).StatusCode).To(Equal(http.StatusOK))
	define(t, red, gadgetDefinition("example.org", "v1"))
	g.Eventually(func() string {
		return fetch(t, red, "/apis", http.Header{"Accept": {accept}, "If-None-Match": {tag}}).Status
	}).WithTimeout(later).Should(Equal(http.StatusText(http.StatusOK)))
	for _, other := range []string{"image/png", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "*/*", ""} {
		header := http.Header{"Accept": {other}}
		g.Expect(fetch(t, red, "/apis", header).StatusCode).To(Equal(fetch(t, plain, "/apis", header).StatusCode), other)
	}
}

// TestManyDefinitions: discovery and OpenAPI of many groups.
func TestManyDefinitions(t *testing.T) {
	const many = 60
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	all := definitionsOf(t, red).ApiextensionsV1().CustomResourceDefinitions()
	for i := range many {
		_, err := all.Create(t.Context(), gadgetDefinition(fmt.Sprintf("g%d.example.org", i), "v1"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Eventually(func() int {
		found := 0
		for version := range resourcesOf(t, red, false) {
			if parsed, err := schema.ParseGroupVersion(version); err == nil && len(parsed.Group) > len("example.org") &&
				parsed.Group[len(parsed.Group)-len("example.org"):] == "example.org" {
				found++
			}
		}
		return found
	}).WithTimeout(later).Should(Equal(many))
	paths, err := definitionsOf(t, red).Discovery().OpenAPIV3().Paths()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(paths).To(And(HaveKey("apis/g0.example.org/v1"), HaveKey(fmt.Sprintf("apis/g%d.example.org/v1", many-1)), HaveKey("apis/apps/v1")))
}

// TestDiscoveryRequiresAuthentication: the APIs of a tenant are not for all.
func TestDiscoveryRequiresAuthentication(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	for _, path := range []string{"/apis", "/apis/example.com", "/apis/example.com/v1", "/openapi/v2", "/openapi/v3", "/apis/example.com/v1/widgets"} {
		response := httptest.NewRecorder()
		c.Handler(red).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		g.Expect(response.Code).To(Equal(http.StatusUnauthorized), path)
	}
}

// preferred returns the resources of a tenant with their preferred versions.
func preferred(t *testing.T, client kubernetes.Interface) []string {
	t.Helper()
	lists, err := client.Discovery().ServerPreferredResources()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	found := make([]string, 0, len(lists))
	for _, list := range lists {
		for _, each := range list.APIResources {
			found = append(found, list.GroupVersion+"/"+each.Name)
		}
	}
	return found
}

// TestPreferredVersions: those of the built-in groups remain.
func TestPreferredVersions(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, client := addTeam(t, c, "red")
	_, plain := addTeam(t, c, "plain")
	define(t, red, gadgetDefinition("example.org", "v1beta1", "v2", "v1"))
	g.Expect(preferred(t, client)).To(ConsistOf(append(preferred(t, plain), "example.org/v2/gadgets")))
}
