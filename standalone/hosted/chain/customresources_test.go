package chain_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// definitionOf returns the definition of widgets, whose spec has one field.
func definitionOf(field, kind string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: widgets.Resource + "." + widgets.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: widgets.Resource, Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgets.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Description: "Widget of " + field,
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec":   {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: kind}, "replicas": {Type: "integer"}}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer"}}},
					},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
				},
			}},
		},
	}
}

func widget(name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion(widgets.GroupVersion().String())
	object.SetKind("Widget")
	object.SetName(name)
	return object
}

// definitionsOf returns a client of the definitions of a tenant.
func definitionsOf(t *testing.T, tenant *chain.Tenant) *clientset.Clientset {
	t.Helper()
	client, err := clientset.NewForConfig(tenant.Config())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return client
}

// widgetsOf returns a client of the widgets of a tenant.
func widgetsOf(t *testing.T, tenant *chain.Tenant) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(tenant.Config())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return client.Resource(widgets).Namespace("team")
}

// addTeam adds a tenant with a namespace.
func addTeam(t *testing.T, c *chain.Chain, name string) (*chain.Tenant, kubernetes.Interface) {
	t.Helper()
	tenant, client := add(t, c, name)
	createNamespace(t, client, "team")
	return tenant, client
}

// define creates a definition and waits until its resources are served.
func define(t *testing.T, tenant *chain.Tenant, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	all := definitionsOf(t, tenant).ApiextensionsV1().CustomResourceDefinitions()
	_, err := all.Create(t.Context(), definition, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	shouldServe(t, tenant, definition)
}

// shouldServe waits until the resources of a definition are served.
func shouldServe(t *testing.T, tenant *chain.Tenant, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	g := NewWithT(t)
	version := schema.GroupVersion{Group: definition.Spec.Group, Version: definition.Spec.Versions[0].Name}.String()
	g.Eventually(func() map[string]*metav1.APIResourceList { return resourcesOf(t, tenant, false) }).WithTimeout(later).Should(
		HaveKeyWithValue(version, HaveField("APIResources", ContainElement(HaveField("Name", definition.Spec.Names.Plural)))))
}

// undefine deletes the definition of widgets.
func undefine(t *testing.T, tenant *chain.Tenant) {
	t.Helper()
	all := definitionsOf(t, tenant).ApiextensionsV1().CustomResourceDefinitions()
	NewWithT(t).Expect(all.Delete(t.Context(), definitionOf("", "").Name, metav1.DeleteOptions{})).To(Succeed())
}

// TestEqualDefinitions: two tenants define the same resource with different
// schemas, and a third one does not.
func TestEqualDefinitions(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	red, _ := addTeam(t, c, "red")
	blue, _ := addTeam(t, c, "blue")
	plain, _ := addTeam(t, c, "plain")
	define(t, red, definitionOf("size", "integer"))
	define(t, blue, definitionOf("size", "string"))

	_, err := widgetsOf(t, red).Create(t.Context(), widget("x", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = widgetsOf(t, blue).Create(t.Context(), widget("x", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
	g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	_, err = widgetsOf(t, blue).Create(t.Context(), widget("x", map[string]any{"size": "large"}), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = widgetsOf(t, plain).List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

	got, err := widgetsOf(t, red).Get(t.Context(), "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Object["spec"]).To(Equal(map[string]any{"size": int64(1)}))
	list, err := widgetsOf(t, blue).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(1))
	g.Expect(list.Items[0].Object["spec"]).To(Equal(map[string]any{"size": "large"}))
	g.Expect(keysOf(t, all)).To(ContainElements(
		"/controlplanes/red/example.com/widgets/team/x", "/controlplanes/blue/example.com/widgets/team/x"))
	g.Expect(chain.ServesCustomResources(plain)).To(BeFalse())
	g.Expect(chain.ServesCustomResources(red)).To(BeTrue())
}

// TestAppliesDefinition: server-side apply creates the first definition of a
// tenant, as Helm does, and changes it.
func TestAppliesDefinition(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	definition := definitionOf("size", "integer")
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	all := definitionsOf(t, red).ApiextensionsV1().CustomResourceDefinitions()
	for _, label := range []string{"first", "second"} {
		definition.Labels = map[string]string{"label": label}
		data, err := json.Marshal(definition)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = all.Patch(t.Context(), definition.Name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "test"})
		g.Expect(err).NotTo(HaveOccurred())
		shouldServe(t, red, definition)
	}
}

// TestWithoutDefinitions: the API of definitions needs nothing of a tenant that
// has none.
func TestWithoutDefinitions(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	plain, client := addTeam(t, c, "plain")
	list, err := definitionsOf(t, plain).ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(BeEmpty())
	_, found, err := client.Discovery().ServerGroupsAndResources()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ContainElement(HaveField("GroupVersion", "apiextensions.k8s.io/v1")))
	_, err = widgetsOf(t, plain).List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	_, err = definitionsOf(t, plain).ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{}, metav1.CreateOptions{})
	g.Expect(err).To(HaveOccurred())
	g.Expect(chain.ServesCustomResources(plain)).To(BeFalse())
}

// TestSubresources: status and scale of a custom resource, and what apply owns.
func TestSubresources(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	resources := widgetsOf(t, red)
	_, err := resources.Create(t.Context(), widget("x", map[string]any{"size": int64(1), "replicas": int64(1), "unknown": "x"}), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = resources.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}, "scale")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = resources.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"spec":{"size":9},"status":{"replicas":2}}`), metav1.PatchOptions{}, "status")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = resources.Apply(t.Context(), "x", widget("x", map[string]any{"size": int64(5)}), metav1.ApplyOptions{FieldManager: "test", Force: true})
	g.Expect(err).NotTo(HaveOccurred())
	got, err := resources.Get(t.Context(), "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Object["spec"]).To(Equal(map[string]any{"size": int64(5), "replicas": int64(3)}), "unknown fields are dropped")
	g.Expect(got.Object["status"]).To(Equal(map[string]any{"replicas": int64(2)}))
}

// TestDeletesDefinition: the resources of a deleted definition are deleted. One
// with a finalizer delays that.
func TestDeletesDefinition(t *testing.T) {
	t.Parallel() // upstream's finalizer waits for seconds
	g := NewWithT(t)
	c, all := startChain(t)
	red, _ := addTeam(t, c, "red")
	blue, _ := addTeam(t, c, "blue")
	for _, tenant := range []*chain.Tenant{red, blue} {
		define(t, tenant, definitionOf("size", "integer"))
		held := widget("held", nil)
		held.SetFinalizers([]string{"example.com/hold"})
		for _, object := range []*unstructured.Unstructured{held, widget("free", nil)} {
			_, err := widgetsOf(t, tenant).Create(t.Context(), object, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	undefine(t, red)
	g.Eventually(func(g Gomega) {
		list, err := widgetsOf(t, red).List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].GetDeletionTimestamp()).NotTo(BeNil())
	}).WithTimeout(later).Should(Succeed())
	_, err := widgetsOf(t, red).Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() []string { return tenantKeys(t, all, "red") }).WithTimeout(later).ShouldNot(
		ContainElement(Or(ContainSubstring("widgets"), ContainSubstring("customresourcedefinitions"))))

	list, err := widgetsOf(t, blue).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(2), "those of another tenant remain")
}

// TestDefinitionsAfterRestart: a new chain on the same store serves the custom
// resources, and continues with what their controllers had to do.
func TestDefinitionsAfterRestart(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	_, err := widgetsOf(t, red).Create(t.Context(), widget("x", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	c.Remove(red)

	c = secondChain(t.Context(), t)
	red, _ = add(t, c, "red")
	got, err := widgetsOf(t, red).Get(t.Context(), "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "the first request")
	g.Expect(got.Object["spec"]).To(Equal(map[string]any{"size": int64(1)}))
}

// TestUpdatesDefinition: a changed schema is in force soon.
func TestUpdatesDefinition(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	_, err := definitionsOf(t, red).ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), "widgets.example.com", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/type","value":"string"}]`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		_, err := widgetsOf(t, red).Create(t.Context(), widget("x", map[string]any{"size": "large"}), metav1.CreateOptions{})
		return err
	}).WithTimeout(later).Should(Succeed())
}

// TestUnreadableDefinition: a tenant whose definitions cannot be decoded cannot
// use custom resources, and learns that none is missing. Others serve.
func TestUnreadableDefinition(t *testing.T) {
	t.Parallel() // requests wait for the definitions
	g := NewWithT(t)
	failed := make(chan string, 1)
	c, all := chainWith(t, func(o *chain.Options) { o.OnFailure = func(tenant string, _ error) { failed <- tenant } })
	_, err := all.Put(t.Context(), keyspace.Prefix("broken")+"/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com", "{")
	g.Expect(err).NotTo(HaveOccurred())
	broken, client := addTeam(t, c, "broken")
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	_, err = widgetsOf(t, broken).List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsServiceUnavailable(err)).To(BeTrue(), "%v", err)
	g.Eventually(failed, later).Should(Receive(Equal("broken")))
	_, err = client.Discovery().ServerGroups()
	g.Expect(apierrors.IsServiceUnavailable(err)).To(BeTrue(), "%v", err)
	_, err = client.CoreV1().ConfigMaps("team").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = widgetsOf(t, red).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	c.Remove(broken)
}

// TestDecoratesCustomResources: what limits the storage of built-in resources
// also limits that of the others.
func TestDecoratesCustomResources(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	decorated := map[string]int{}
	c, _ := chainWith(t, func(o *chain.Options) {
		o.Decorate = func(store storage.Interface, resource schema.GroupResource) storage.Interface {
			mu.Lock()
			defer mu.Unlock()
			decorated[resource.String()]++
			return store
		}
	})
	for _, name := range []string{"red", "blue"} {
		tenant, _ := addTeam(t, c, name)
		define(t, tenant, definitionOf("size", "integer"))
		_, err := widgetsOf(t, tenant).List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	mu.Lock()
	defer mu.Unlock()
	g.Expect(decorated).To(HaveKeyWithValue("widgets.example.com", 2), "they are not shared")
	g.Expect(decorated).To(HaveKeyWithValue("customresourcedefinitions.apiextensions.k8s.io", 1))
	g.Expect(decorated).To(HaveKeyWithValue("apiservices.apiregistration.k8s.io", 1))
}

// chainWith starts an etcd and a chain with other options.
func chainWith(t *testing.T, change func(*chain.Options)) (*chain.Chain, *clientv3.Client) {
	t.Helper()
	g := NewWithT(t)
	kv, all := etcdtest.Start(t)
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source.Run)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	options := chain.Options{Store: keyspace.Confine(clientOf(t, all.Endpoints()[0])), Feed: source}
	change(&options)
	c, err := chain.New(ctx, options)
	g.Expect(err).NotTo(HaveOccurred())
	return c, all
}

// TestEndsWithTenant: the controllers of a removed tenant have ended.
func TestEndsWithTenant(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	c.Remove(red)
	g.Expect(chain.ServesCustomResources(red)).To(BeFalse())
	_, err := widgetsOf(t, red).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(HaveOccurred())
}

// TestEndsUnused: without definitions, the server ends after some time. It is
// started again with the next definition.
func TestEndsUnused(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, _ := addTeam(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	chain.EndUnused(t.Context(), red)
	g.Expect(chain.ServesCustomResources(red)).To(BeTrue(), "there is a definition")
	undefine(t, red)
	g.Eventually(func() bool {
		chain.EndUnused(t.Context(), red)
		return chain.ServesCustomResources(red)
	}).WithTimeout(later).Should(BeFalse())
	_, err := widgetsOf(t, red).List(t.Context(), metav1.ListOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)

	define(t, red, definitionOf("size", "string"))
	_, err = widgetsOf(t, red).Create(t.Context(), widget("x", map[string]any{"size": "large"}), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// tenantKeys returns the keys of a tenant.
func tenantKeys(t *testing.T, all *clientv3.Client, tenant string) []string {
	t.Helper()
	return slices.DeleteFunc(keysOf(t, all), func(key string) bool { return !strings.HasPrefix(key, keyspace.Prefix(tenant)+"/") })
}

// keysOf returns all keys in etcd.
func keysOf(t *testing.T, all *clientv3.Client) []string {
	t.Helper()
	response, err := all.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	keys := make([]string, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}
