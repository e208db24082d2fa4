package chain_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/openapi"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// documentOf returns the OpenAPI document of version 2 of a tenant.
func documentOf(t *testing.T, tenant *chain.Tenant) string {
	t.Helper()
	response := fetch(t, tenant, "/openapi/v2", http.Header{"Accept": {"application/json"}})
	content, err := io.ReadAll(response.Body)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(json.Valid(content)).To(BeTrue())
	return string(content)
}

// versionOf returns the OpenAPI document of version 3 of a version of a group.
func versionOf(t *testing.T, tenant *chain.Tenant, path string) string {
	t.Helper()
	g := NewWithT(t)
	var paths map[string]openapi.GroupVersion
	g.Eventually(func() (_ map[string]openapi.GroupVersion, err error) { // documents follow definitions by a watch
		paths, err = definitionsOf(t, tenant).Discovery().OpenAPIV3().Paths()
		return paths, err
	}).WithTimeout(later).Should(HaveKey(path))
	content, err := paths[path].Schema(openapi.ContentTypeOpenAPIV3PB)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).NotTo(BeEmpty())
	content, err = paths[path].Schema("application/json")
	g.Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// TestOpenAPI: the documents describe the built-in resources, and the custom
// ones of the tenant only.
func TestOpenAPI(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	blue, _ := addTeam(t, c, "blue")
	plain, _ := addTeam(t, c, "plain")
	define(t, red, definitionOf("size", "integer"))
	define(t, blue, definitionOf("color", "string"))
	const deployment = `"io.k8s.api.apps.v1.Deployment"`
	g.Expect(documentOf(t, red)).To(And(ContainSubstring("Widget of size"), Not(ContainSubstring("Widget of color")), ContainSubstring(deployment)))
	g.Expect(documentOf(t, blue)).To(And(ContainSubstring("Widget of color"), Not(ContainSubstring("Widget of size")), ContainSubstring(deployment)))
	g.Expect(documentOf(t, plain)).To(And(Not(ContainSubstring("Widget of")), ContainSubstring(deployment)))

	g.Expect(versionOf(t, red, "apis/example.com/v1")).To(And(ContainSubstring("Widget of size"), Not(ContainSubstring("Widget of color"))))
	g.Expect(versionOf(t, blue, "apis/example.com/v1")).To(ContainSubstring("Widget of color"))
	g.Expect(versionOf(t, red, "apis/apps/v1")).To(Equal(versionOf(t, plain, "apis/apps/v1")))
	paths, err := definitionsOf(t, plain).Discovery().OpenAPIV3().Paths()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(paths).NotTo(HaveKey("apis/example.com/v1"))
	g.Expect(fetch(t, plain, "/openapi/v3/apis/example.com/v1", nil).ContentLength).To(BeNumerically("<", 1))
}

// TestOpenAPIOfSharedGroup: the document of a version that is built in stays as
// it is.
func TestOpenAPIOfSharedGroup(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	plain, _ := addTeam(t, c, "plain")
	define(t, red, gadgetDefinition("networking.k8s.io", "v7", "v1"))
	g.Expect(versionOf(t, red, "apis/networking.k8s.io/v7")).To(ContainSubstring("Widget of size"))
	g.Expect(versionOf(t, red, "apis/networking.k8s.io/v1")).To(Equal(versionOf(t, plain, "apis/networking.k8s.io/v1")))
}

// TestOpenAPIFollows: the documents follow the definitions, and are dropped when
// they are not requested.
func TestOpenAPIFollows(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	g.Expect(chain.KeepsDocuments(red)).To(BeFalse(), "they have not been requested")
	g.Expect(documentOf(t, red)).To(ContainSubstring("Widget of size"))
	tag := fetch(t, red, "/openapi/v2", http.Header{"Accept": {"application/json"}}).Header.Get("ETag")
	known := http.Header{"Accept": {"application/json"}, "If-None-Match": {tag}}
	g.Expect(fetch(t, red, "/openapi/v2", known).StatusCode).To(Equal(http.StatusNotModified))
	g.Expect(chain.KeepsDocuments(red)).To(BeTrue())

	objects := definitionsOf(t, red).ApiextensionsV1().CustomResourceDefinitions()
	_, err := objects.Patch(t.Context(), "widgets.example.com", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"Another widget"}]`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() string { return documentOf(t, red) }).WithTimeout(later).Should(
		And(ContainSubstring("Another widget"), Not(ContainSubstring("Widget of size"))))
	g.Expect(versionOf(t, red, "apis/example.com/v1")).To(ContainSubstring("Another widget"))
	g.Expect(fetch(t, red, "/openapi/v2", known).StatusCode).To(Equal(http.StatusOK))

	chain.DropDocuments(red)
	g.Expect(chain.KeepsDocuments(red)).To(BeFalse())
	g.Expect(strings.Count(documentOf(t, red), "Another widget")).To(BeNumerically(">", 0), "they are computed again")

	undefine(t, red)
	g.Eventually(func() string { return documentOf(t, red) }).WithTimeout(later).ShouldNot(ContainSubstring("Another widget"))
}
