package escapes

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// crdsPath is where CRDs are.
const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// crdOf is a CRD of the resource widgets in a group, without a namespace.
func crdOf(group string, labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group, Labels: labels}}
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
	}}}
	return crd
}

// permitCustom lets the service account of a tenant use custom resources, which is
// vc-manager's part.
func permitCustom(ctx context.Context, t *kit.Converted, group string, resources ...string) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: group + "-" + t.Key}}
	for _, resource := range resources {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{names.ConvertedGroup(t.Key) + group}, Resources: []string{resource, resource + "/status"}, Verbs: []string{"*"},
		})
	}
	kit.Temporarily(ctx, super.Client, role)
	kit.Temporarily(ctx, super.Client, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: t.Key, Name: names.ConvertedAccount}},
	})
}

var _ = Describe("The CRDs of a converted tenant", Ordered, ContinueOnFailure, func() {
	var (
		alice, mallory *kit.Converted
		ofAlice, mine  *apiextensionsv1.CustomResourceDefinition // in the super cluster
	)
	// stored is a CRD of a tenant in the super cluster.
	stored := func(t *kit.Converted, group string) *apiextensionsv1.CustomResourceDefinition {
		return crdOf(names.ConvertedGroup(t.Key)+group, nil)
	}
	body := func(group, more string) string {
		return `{"metadata":{"name":"widgets.` + group + `"},"spec":{"group":"` + group + `","scope":"Cluster",` + more +
			`"names":{"plural":"widgets","singular":"widget","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,` +
			`"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	}

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		alice, mallory = converter.Tenant(ctx, "crds-3c4d5e-alice"), converter.Tenant(ctx, "crds-7f6e5d-mallory")
		for _, t := range []*kit.Converted{alice, mallory} {
			permitCustom(ctx, t, "example.com", "widgets")
			Expect(t.Ask(ctx, http.MethodPost, crdsPath, body("example.com", "")).Code).To(Equal(http.StatusCreated))
			DeferCleanup(func(ctx SpecContext) {
				Expect(t.Ask(ctx, http.MethodDelete, crdsPath, "").Code).To(Equal(http.StatusOK))
			})
		}
		ofAlice, mine = stored(alice, "example.com"), stored(mallory, "example.com")
		Expect(kit.Get(ctx, super.Client, ofAlice)).To(Succeed())
	})

	attack("another's CRDs and those of the platform, by their names, paths and selectors", "idea: a CRD is an object of the whole super cluster", func(ctx SpecContext) {
		for _, path := range []string{
			crdsPath + "/" + ofAlice.Name, crdsPath + "/virtualclusters.tenancy.x-k8s.io", crdsPath + "/widgets", crdsPath + "/..",
			"/apis/" + ofAlice.Spec.Group + "/v1/widgets", "/apis/" + mine.Spec.Group + "/v1/widgets",
			"/apis/tenancy.x-k8s.io/v1alpha1/virtualclusters", "/apis/tenancy.x-k8s.io/v1alpha1/namespaces/default/virtualclusters",
			"/apis/" + ofAlice.Spec.Group, "/openapi/v3/apis/" + ofAlice.Spec.Group + "/v1", "/openapi/v3/apis/tenancy.x-k8s.io/v1alpha1",
		} {
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				Expect(mallory.Ask(ctx, method, path, "").Code).To(BeElementOf(
					http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed), method+" "+path)
			}
		}
		for _, selector := range []string{"!" + names.Converted, names.Converted + "=" + alice.Key, names.Converted + "!=" + mallory.Key} {
			reply := mallory.Ask(ctx, http.MethodGet, crdsPath+"?labelSelector="+url.QueryEscape(selector), "")
			Expect(reply.Code).To(Equal(http.StatusBadRequest), selector)
		}
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(mallory.Client.List(ctx, list)).To(Succeed())
		Expect(list.Items).To(HaveExactElements(HaveField("Name", "widgets.example.com")))
	})

	attack("a schema in protobuf of a converted tenant, in 100,000 others, or of which each level is decoded twice",
		"idea: the gateway decodes all types in protobuf for each resource", func(ctx SpecContext) {
			for _, path := range []string{crdsPath, "/api/v1/namespaces"} {
				reply := mallory.Ask(ctx, http.MethodPost, path, string(nestingtest.Definition(nestingtest.Nots(100_000))), "Content-Type", "application/vnd.kubernetes.protobuf")
				Expect(reply.Code).To(Equal(http.StatusRequestEntityTooLarge), reply.Body)
				reply = mallory.Ask(ctx, http.MethodPost, path, string(nestingtest.Definition(nestingtest.Doubling(60))), "Content-Type", "application/vnd.kubernetes.protobuf")
				Expect(reply.Code).To(Equal(http.StatusBadRequest), reply.Body)
			}
		})

	attack("objects of a converted tenant in protobuf, of which each part has the rest in it, or two bytes make a container",
		"idea: the gateway decodes protobuf without the limits of an apiserver", func(ctx SpecContext) {
			const (
				dataField, entries, padding = 2, 300, 2_900_000
				containersField, containers = 2, 1_400_000
			)
			overlapping := nestingtest.Overlapping(dataField, entries, padding)
			pod := protobufPod(bytes.Repeat(nestingtest.In(nil, containersField), containers))
			for _, a := range []struct {
				body string
				code int
			}{
				{string(nestingtest.Object("v1", "ConfigMap", overlapping)), http.StatusBadRequest},
				{string(nestingtest.Object("v1", "Secret", overlapping)), http.StatusBadRequest},
				{pod, http.StatusRequestEntityTooLarge},
			} {
				reply := mallory.Ask(ctx, http.MethodPost, "/api/v1/namespaces", a.body, "Content-Type", "application/vnd.kubernetes.protobuf")
				Expect(reply.Code).To(Equal(a.code), reply.Body)
			}
		})

	attack("the super cluster's CPU, by a CRD that a JSON patch nests", "idea: moves put objects into each other", func(ctx SpecContext) {
		const root, levels = "/spec/versions/0/schema/openAPIV3Schema/properties", 100
		value := strings.Repeat(`{"not":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
		for _, a := range []struct {
			path, patch string
			code        int
		}{
			{"", nestingPatches(root)[1], http.StatusBadRequest},
			{"", `[{"op":"add","path":"` + root + `","value":` + value + "}]", http.StatusBadRequest},
			{"/status", nestingPatches(root)[1], http.StatusRequestEntityTooLarge},
			{"/status", `[{"op":"copy","from":"/spec","path":"` + root + `"}]`, http.StatusRequestEntityTooLarge},
			{"/status", `[{"op":"add","path":"` + root + `","value":` + value + "}]", http.StatusRequestEntityTooLarge},
		} {
			reply := mallory.Ask(ctx, http.MethodPatch, crdsPath+"/widgets.example.com"+a.path, a.patch, "Content-Type", string(types.JSONPatchType))
			Expect(reply.Code).To(Equal(a.code), reply.Body)
			Expect(reply.Body).To(ContainSubstring("nested"))
		}
	})

	attack("a group of the platform, or of Kubernetes, by a CRD", "idea: the first to define a kind owns it", func(ctx SpecContext) {
		platform := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "virtualclusters.tenancy.x-k8s.io"}}
		Expect(kit.Get(ctx, super.Client, platform)).To(Succeed())
		permitCustom(ctx, mallory, "tenancy.x-k8s.io", "widgets")
		permitCustom(ctx, mallory, ofAlice.Spec.Group, "widgets")
		Expect(mallory.Ask(ctx, http.MethodPost, crdsPath, body("tenancy.x-k8s.io", "")).Code).To(
			BeElementOf(http.StatusUnprocessableEntity, http.StatusCreated), "in a group of its own")
		reply := mallory.Ask(ctx, http.MethodPost, crdsPath, body("apps", ""))
		Expect(reply.Code).To(Equal(http.StatusUnprocessableEntity), reply.Body)
		reply = mallory.Ask(ctx, http.MethodPost, crdsPath, body(ofAlice.Spec.Group, ""))
		Expect(kit.Get(ctx, super.Client, stored(mallory, ofAlice.Spec.Group))).To(Succeed(), reply.Body)
		version := platform.ResourceVersion
		Expect(kit.Get(ctx, super.Client, platform)).To(Succeed())
		Expect(platform.ResourceVersion).To(Equal(version))
	})

	attack("the platform's label of a CRD, by each way to write", "idea: without it, a CRD outlives the tenant", func(ctx SpecContext) {
		const path = crdsPath + "/widgets.example.com"
		for _, write := range []struct{ mediaType, body string }{
			{string(types.MergePatchType), `{"metadata":{"labels":null}}`},
			{string(types.MergePatchType), `{"metadata":{"labels":{"` + names.Converted + `":"` + alice.Key + `"}}}`},
			{string(types.StrategicMergePatchType), `{"metadata":{"labels":{"$patch":"replace"}}}`},
			{string(types.JSONPatchType), `[{"op":"remove","path":"/metadata/labels"}]`},
			{string(types.JSONPatchType), `[{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}]`},
			{string(types.JSONPatchType), `[{"op":"replace","path":"/spec/group","value":"` + ofAlice.Spec.Group + `"}]`},
			{string(types.ApplyYAMLPatchType), body("example.com", "")},
		} {
			for _, subresource := range []string{"", "/status"} {
				reply := mallory.Ask(ctx, http.MethodPatch, path+subresource+"?fieldManager=m&force=true", write.body, "Content-Type", write.mediaType)
				Expect(kit.Get(ctx, super.Client, mine)).To(Succeed())
				Expect(mine.Labels).To(HaveKeyWithValue(names.Converted, mallory.Key), subresource+" "+write.body+" "+reply.Body)
			}
		}
	})

	attack("the platform's labels and names, by a CRD whose kinds are called as lists or Tables are", "idea: the gateway goes by the names of kinds", func(ctx SpecContext) {
		kinds := []string{"AllowList", "Table", "Status"}
		for i := range kinds {
			permitCustom(ctx, mallory, fmt.Sprintf("kinds%d.example.com", i), "widgets")
		}
		for i, kind := range kinds {
			group := fmt.Sprintf("kinds%d.example.com", i)
			crd := strings.Replace(body(group, ""), `"kind":"Widget"`, `"kind":"`+kind+`","listKind":"Many`+kind+`"`, 1)
			crd = strings.Replace(crd, `{"type":"object"}`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, 1)
			Expect(mallory.Ask(ctx, http.MethodPost, crdsPath, crd).Code).To(Equal(http.StatusCreated), kind)
			path := "/apis/" + group + "/v1/widgets"
			object := `{"apiVersion":"` + group + `/v1","kind":"` + kind + `","metadata":{"name":"a"},"items":{},"rows":[],"message":"a"}`
			Eventually(func() local.Reply { return mallory.Ask(ctx, http.MethodPost, path, object) }).WithContext(ctx).
				Should(HaveField("Code", http.StatusCreated), kind)
			for _, each := range []string{path, path + "/a"} {
				for _, accept := range []string{"application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"} {
					var reply local.Reply
					Eventually(func() local.Reply { // the cache of a new definition lags
						reply = mallory.Ask(ctx, http.MethodGet, each, "", "Accept", accept)
						return reply
					}).WithContext(ctx).Should(And(HaveField("Code", http.StatusOK), HaveField("Body", ContainSubstring(`"a"`))), each)
					Expect(reply.Body).NotTo(Or(ContainSubstring(mallory.Key), ContainSubstring(names.ConvertedGroup(mallory.Key)),
						ContainSubstring(names.Domain)), each+" as "+accept)
				}
			}
		}
	})

	attack("addresses of the super cluster, by a conversion webhook", "idea: the super cluster's apiserver calls it", func(ctx SpecContext) {
		const config = `{"url":"https://169.254.169.254/"}`
		const conversion = `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":` + config + `}}`
		const path = crdsPath + "/widgets.hooked.example.com"
		permitCustom(ctx, mallory, "hooked.example.com", "widgets")
		hooked := body("hooked.example.com", `"conversion":`+conversion+`,`)
		reply := mallory.Ask(ctx, http.MethodPost, crdsPath, hooked)
		Expect(reply.Code).To(Equal(http.StatusCreated), reply.Body)
		found := stored(mallory, "hooked.example.com")
		for _, write := range []struct{ path, mediaType, body string }{
			{path, string(types.JSONPatchType), `[{"op":"add","path":"/spec/conversion","value":` + conversion + `}]`},
			{path, string(types.JSONPatchType), `[{"op":"add","path":"/spec/conversion/webhook/clientConfig","value":` + config + `}]`},
			{path, string(types.JSONPatchType), `[{"op":"add","path":"/spec/conversion/webhook/clientConfig/url","value":"https://169.254.169.254/"}]`},
			{path, string(types.MergePatchType), `{"spec":{"conversion":` + conversion + `}}`},
			{path, string(types.StrategicMergePatchType), `{"spec":{"conversion":` + conversion + `}}`},
			{path, string(types.ApplyYAMLPatchType), hooked},
			{path + "/status", string(types.MergePatchType), `{"spec":{"conversion":` + conversion + `}}`},
			{path + "/status", string(types.JSONPatchType), `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig/url","value":"https://169.254.169.254/"}]`},
			{path + "/status", string(types.ApplyYAMLPatchType), hooked},
		} {
			reply := mallory.Ask(ctx, http.MethodPatch, write.path+"?fieldManager=m&force=true", write.body, "Content-Type", write.mediaType)
			Expect(kit.Get(ctx, super.Client, found)).To(Succeed())
			client := found.Spec.Conversion.Webhook.ClientConfig
			Expect(client.Service).To(BeNil())
			Expect(*client.URL).To(HavePrefix("https://gw.example.com"+names.ConversionPath+mallory.Key+"/widgets.hooked.example.com/"), write.body+" "+reply.Body)
		}
		Expect(mallory.Ask(ctx, http.MethodGet, path, "").Body).To(And(ContainSubstring(config), Not(ContainSubstring("gw.example.com"))))
	})

	attack("CRDs of all, by a deletion without a name", "idea: a collection is not the tenant's", func(ctx SpecContext) {
		permitCustom(ctx, mallory, "collected.example.com", "widgets")
		reply := mallory.Ask(ctx, http.MethodPost, crdsPath, body("collected.example.com", ""))
		Expect(reply.Code).To(Equal(http.StatusCreated), reply.Body)
		Expect(mallory.Ask(ctx, http.MethodDelete, crdsPath+"?labelSelector="+url.QueryEscape(names.Converted), "").Code).To(Equal(http.StatusBadRequest))
		Expect(mallory.Ask(ctx, http.MethodDelete, crdsPath, "").Code).To(Equal(http.StatusOK))
		kit.ShouldVanish(ctx, super.Client, stored(mallory, "collected.example.com"))
		Expect(kit.Get(ctx, super.Client, ofAlice)).To(Succeed())
		Expect(ofAlice.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(3*kit.Soon))

	attack("CRDs and roles of the platform, as a gateway or a manager that was taken over", "idea: their rights have no names in them", func(ctx SpecContext) {
		account, err := super.GatewayAccount(ctx)
		Expect(err).NotTo(HaveOccurred())
		gateway, err := local.NewClient(account)
		Expect(err).NotTo(HaveOccurred())
		config := rest.CopyConfig(super.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:vc-system:vc-manager", Groups: []string{"system:masters"}}
		manager, err := local.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		label := map[string]string{names.Converted: mallory.Key}
		for name, c := range map[string]client.WithWatch{"gateway": gateway, "manager": manager} {
			platform := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "virtualclusters.tenancy.x-k8s.io"}}
			Expect(c.Delete(ctx, platform)).NotTo(Succeed(), name)
			Expect(c.Patch(ctx, platform, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+names.Converted+`":"a"}}}`)))).NotTo(Succeed(), name)
			Expect(c.Create(ctx, crdOf("example.com", label))).NotTo(Succeed(), name)
			Expect(c.Create(ctx, crdOf(names.ConvertedGroup(mallory.Key)+"more.example.com", nil))).NotTo(Succeed(), name)
		}
		refusesRoles(ctx, manager, mallory.Key)
	})
})

// refusesRoles asserts that the manager gives no account more than the custom
// resources of a tenant.
func refusesRoles(ctx context.Context, manager client.Client, key string) {
	GinkgoHelper()
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	secrets := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}
	paths := []rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}}
	own := names.ConvertedCRDs + key
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "more"}}, {ObjectMeta: metav1.ObjectMeta{Name: own}, Rules: all},
		{ObjectMeta: metav1.ObjectMeta{Name: own}, Rules: secrets}, {ObjectMeta: metav1.ObjectMeta{Name: own}, Rules: paths},
		{ObjectMeta: metav1.ObjectMeta{Name: own}, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}},
	} {
		Expect(manager.Create(ctx, role, client.DryRunAll)).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy")), "%v", role)
	}
	subject := func(namespace, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	}
	for _, binding := range []*rbacv1.ClusterRoleBinding{
		{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Subjects: subject(key, names.ConvertedAccount), RoleRef: rbacv1.RoleRef{Name: "more"}},
		{ObjectMeta: metav1.ObjectMeta{Name: own}, Subjects: subject(key, names.ConvertedAccount), RoleRef: rbacv1.RoleRef{Name: "cluster-admin"}},
		{ObjectMeta: metav1.ObjectMeta{Name: own}, Subjects: subject(key, "default"), RoleRef: rbacv1.RoleRef{Name: own}},
		{ObjectMeta: metav1.ObjectMeta{Name: own}, Subjects: subject("other", names.ConvertedAccount), RoleRef: rbacv1.RoleRef{Name: own}},
		{ObjectMeta: metav1.ObjectMeta{Name: own}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}, RoleRef: rbacv1.RoleRef{Name: own}},
	} {
		binding.RoleRef.APIGroup, binding.RoleRef.Kind = rbacv1.GroupName, "ClusterRole"
		Expect(manager.Create(ctx, binding, client.DryRunAll)).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy")), "%v", binding)
	}
	Expect(manager.Patch(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}},
		client.RawPatch(types.MergePatchType, []byte(`{"rules":[]}`)), client.DryRunAll)).NotTo(Succeed())
}
