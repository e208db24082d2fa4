package integration

import (
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("Bad input of a converted tenant", Ordered, ContinueOnFailure, func() {
	const (
		namespaces = "/api/v1/namespaces"
		configMaps = namespaces + "/shop/configmaps"
		pods       = namespaces + "/shop/pods"
		crds       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		roles      = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
		bindings   = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings"
	)
	var red *kit.Converted
	crd := func(group string) string {
		return `{"metadata":{"name":"widgets.` + group + `"},"spec":{"group":"` + group + `","scope":"Cluster","names":{"plural":"widgets","singular":"widget",` +
			`"kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	}
	selecting := func(parameter, value string) string {
		return configMaps + "?" + parameter + "=" + url.QueryEscape(value)
	}
	long := func(length int) string { return strings.Repeat("n", length) }

	BeforeAll(func(ctx SpecContext) {
		red = kit.StartConverter(ctx, super).Tenant(ctx, "team-0a1b2c-input")
		kit.Create(ctx, red.Client, namespaceOf("shop"))
	})

	for name, tc := range map[string]struct {
		method, path, body string
		code               int
		want               string
	}{
		"a namespace that is too long":    {http.MethodPost, namespaces, `{"metadata":{"name":"` + long(64) + `"}}`, 422, "63"},
		"a path of such a namespace":      {http.MethodGet, namespaces + "/" + long(64) + "/pods", "", 400, "63"},
		"a CRD that is too long":          {http.MethodPost, crds, crd(strings.Repeat("group.", 40) + "com"), 422, "no more than 233"},
		"a role that is too long":         {http.MethodPost, roles, `{"metadata":{"name":"team:` + long(152) + `"}}`, 422, "no more than 156 bytes"},
		"a document that is too deep":     {http.MethodPost, configMaps, strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101), 400, "nested more than 100 levels"},
		"lists that are too deep":         {http.MethodPost, configMaps, strings.Repeat("[", 1<<20), 400, "nested more than 100 levels"},
		"no object":                       {http.MethodPost, configMaps, `["a"]`, 400, "not a JSON object"},
		"half an object":                  {http.MethodPost, configMaps, `{"metadata":`, 400, "unexpected end"},
		"a key twice":                     {http.MethodPost, configMaps, `{"metadata":{"name":"a","name":"b"}}`, 400, "duplicate field"},
		"a name of a number":              {http.MethodPost, configMaps, `{"metadata":{"name":5}}`, 400, ""},
		"a namespace of a list":           {http.MethodPost, configMaps, `{"metadata":{"name":"a","namespace":["shop"]}}`, 422, "metadata.namespace"},
		"metadata of a text":              {http.MethodPost, configMaps, `{"metadata":"a"}`, 422, "metadata"},
		"a Namespace's name of an object": {http.MethodPost, namespaces, `{"metadata":{"name":{"a":"b"}}}`, 422, "metadata.name"},
		"a subject's namespace of a number": {http.MethodPost, bindings, `{"metadata":{"name":"a"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},` +
			`"subjects":[{"kind":"ServiceAccount","name":"a","namespace":5}]}`, 400, ""},
		"an affinity's namespaces of an object": {http.MethodPost, pods, `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a"}],"affinity":{"podAffinity":` +
			`{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","namespaces":{"a":"b"}}]}}}}`, 422, "namespaces"},
		"the platform's label":            {http.MethodPost, configMaps, `{"metadata":{"name":"a","labels":{"` + names.Converted + `":"b"}}}`, 422, "metadata.labels"},
		"a selector of the platform's":    {http.MethodGet, selecting("labelSelector", names.Converted+"=a"), "", 400, "are the platform's"},
		"a selector without them":         {http.MethodGet, selecting("labelSelector", "!"+names.VCName), "", 400, "are the platform's"},
		"a deletion by such a selector":   {http.MethodDelete, selecting("labelSelector", names.VCNamespace+" in (a)"), "", 400, "are the platform's"},
		"a selector that is none":         {http.MethodGet, selecting("labelSelector", "a=="), "", 200, ""},
		"a selector with an odd operator": {http.MethodGet, selecting("labelSelector", "a~b"), "", 400, ""},
		"a selector of an unknown field":  {http.MethodGet, selecting("fieldSelector", "data.a=b"), "", 400, ""},
		"a token that is none":            {http.MethodGet, selecting("continue", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"), "", 410, "begin again"},
		"an unknown field, strictly":      {http.MethodPost, configMaps + "?fieldValidation=Strict", `{"metadata":{"name":"a"},"date":{}}`, 400, `unknown field \"date\"`},
	} {
		It("is an error: "+name, func(ctx SpecContext) {
			reply := red.Ask(ctx, tc.method, tc.path, tc.body)
			Expect(reply.Code).To(Equal(tc.code), reply.Body)
			Expect(reply.Body).To(ContainSubstring(tc.want))
			Expect(len(reply.Body)).To(BeNumerically("<", 8<<10))
		})
	}
})
