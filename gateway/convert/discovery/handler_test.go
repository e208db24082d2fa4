package discovery

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func resource(name, kind string, subresources ...string) apidiscoveryv2.APIResourceDiscovery {
	r := apidiscoveryv2.APIResourceDiscovery{
		Resource: name, ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"create", "get", "list"},
	}
	for _, sub := range subresources {
		r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub, ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Verbs: []string{"get"},
		})
	}
	return r
}

func group(name string, resources ...apidiscoveryv2.APIResourceDiscovery) apidiscoveryv2.APIGroupDiscovery {
	return apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{
		{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: resources},
	}}
}

// superCluster is one that serves these groups until it is down.
type superCluster struct{ down bool }

func (s *superCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ofBlue := names.ConvertedGroup(blue) + "example.com"
	if r.URL.Path == openAPIPath+"/apis/"+ofBlue+"/v1" {
		_, _ = w.Write([]byte(`{"com.example.` + names.ConvertedGroup(blue) + `v1.Gadget":"` + ofBlue + `"}`))
		return
	}
	if r.URL.Path == swaggerPath {
		s.serveSwagger(w, r)
		return
	}
	if !s.down && strings.HasPrefix(r.URL.Path, openAPIPath) || r.URL.Path == "/version" {
		if len(r.Header["Authorization"])+len(r.Header["X-Remote-User"]) > 0 {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write([]byte(`{"paths":{"api":{},"api/v1":{},"apis":{},"apis/apps":{},"apis/apps/v1":{},"apis/secret.example.com/v1":{},` +
			`"apis/` + ofBlue + `/v1":{"serverRelativeURL":"/openapi/v3/apis/` + ofBlue + `/v1?hash=1"}}}`))
		return
	}
	if s.down || !strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	items := map[string][]apidiscoveryv2.APIGroupDiscovery{
		"/api": {group("", resource("pods", "Pod", "log", "binding"), resource("nodes", "Node"))},
		"/apis": {
			group("apps", resource("deployments", "Deployment", "scale"), resource("daemonsets", "DaemonSet")),
			group("secret.example.com", resource("widgets", "Widget")),
			group("apiregistration.k8s.io", resource("apiservices", "APIService", "status")),
			group("internal.apiserver.k8s.io", resource("storageversions", "StorageVersion")),
		},
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&apidiscoveryv2.APIGroupDiscoveryList{ //nolint:errchkjson // the client is gone
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}, Items: items[r.URL.Path],
	})
}

// newHandler returns a handler in front of a super cluster, and its server.
func newHandler(t *testing.T) (*Handler, *superCluster, *httptest.Server) {
	t.Helper()
	super := &superCluster{}
	behind := httptest.NewServer(super)
	t.Cleanup(behind.Close)
	handler, err := New(&rest.Config{Host: behind.URL})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(handler.For(red, crdsOf(t)))
	t.Cleanup(front.Close)
	return handler, super, front
}

// red is a tenant without CRDs, blue is one with some.
const red, blue = "team-1a2b3c-red", "team-1a2b3c-blue"

// crdsOf returns the CRDs of blue: one that is served in three versions, and one
// that has no names yet.
func crdsOf(t *testing.T) *resources.Index {
	t.Helper()
	crd := &resources.CRD{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.Converted: blue}}}
	crd.Spec.Group, crd.Spec.Scope = names.ConvertedGroup(blue)+"example.com", apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ShortNames: []string{"gd"}}
	for _, name := range []string{"v1beta1", "v2", "v1"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	index, waiting := resources.New(), crd.DeepCopy()
	waiting.Spec.Names.Plural = "waiting"
	index.Set(waiting)
	crd.Status.AcceptedNames = crd.Spec.Names
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	index.Set(crd)
	return index
}

// TestCRDs: a tenant finds its own custom resources by all ways, under their own
// names, and another does not.
func TestCRDs(t *testing.T) {
	handler, _, ofRed := newHandler(t)
	ofBlue := httptest.NewServer(handler.For(blue, crdsOf(t)))
	t.Cleanup(ofBlue.Close)
	for _, legacy := range []bool{false, true} {
		client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: ofBlue.URL})
		client.UseLegacyDiscovery = legacy
		groups, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		var versions []string
		for _, group := range groups {
			for _, version := range group.Versions {
				versions = append(versions, version.GroupVersion)
			}
		}
		if want := []string{"v1", "apps/v1", "apiregistration.k8s.io/v1", "example.com/v2", "example.com/v1", "example.com/v1beta1"}; !slices.Equal(versions, want) {
			t.Errorf("versions %q, want %q", versions, want)
		}
		if !slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
			return list.GroupVersion == "example.com/v1" && len(list.APIResources) == 2 && list.APIResources[0].ShortNames[0] == "gd" &&
				!list.APIResources[0].Namespaced && list.APIResources[1].Name == "gadgets/status"
		}) {
			t.Errorf("there is no example.com/v1 with the resource and its status: %v", lists)
		}
	}
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: ofBlue.URL})
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := paths["apis/example.com/v1"].Schema("application/json")
	if want := `{"com.example.v1.Gadget":"example.com"}`; err != nil || string(schemas) != want {
		t.Errorf("schemas %s, %v, want %s", schemas, err, want)
	}
	for _, path := range []string{"/apis/example.com", "/openapi/v3/apis/example.com/v1"} {
		reply, err := http.Get(ofRed.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusNotFound {
			t.Errorf("%s of another tenant: %d", path, reply.StatusCode)
		}
	}
}

func TestDiscovery(t *testing.T) {
	_, _, front := newHandler(t)
	for name, legacy := range map[string]bool{"aggregated": false, "by version": true} {
		client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: front.URL})
		client.UseLegacyDiscovery = legacy
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var found []string
		for _, list := range lists {
			for _, r := range list.APIResources {
				found = append(found, list.GroupVersion+" "+r.Name)
				if (r.Name == "nodes" || r.Name == "daemonsets" || r.Name == "apiservices") && slices.Contains(r.Verbs, "create") {
					t.Errorf("%s: %s has the verbs %v", name, r.Name, r.Verbs)
				}
			}
		}
		slices.Sort(found)
		want := []string{"apiregistration.k8s.io/v1 apiservices", "apps/v1 daemonsets", "apps/v1 deployments", "apps/v1 deployments/scale", "v1 nodes", "v1 pods", "v1 pods/log"}
		if !slices.Equal(found, want) {
			t.Errorf("%s: found %q, want %q", name, found, want)
		}
	}
}

func TestDocuments(t *testing.T) {
	_, _, front := newHandler(t)
	for path, want := range map[string]int{
		"/api": 200, "/api/": 200, "/apis": 200, "/apis/apps": 200, "/apis/apps/v1": 200, "/apis/apps/v1/": 200,
		"/apis/apps/v2": 404, "/apis/secret.example.com": 404, "/apis/secret.example.com/v1": 404, "/apis/internal.apiserver.k8s.io/v1": 404,
		"/api/v2": 404, "/version": 200, "/version/": 404, "/livez/etcd": 404,
		"/openapi/v3": 200, "/openapi/v3/apis/apps/v1": 200, "/openapi/v3/api/v1": 200, "/openapi/v3/apis": 404, "/openapi/v3/apis/apps": 404,
		"/openapi/v3/apis/secret.example.com/v1": 404, "/openapi/v3/apis/apps/v1/../../secret.example.com/v1": 404,
	} {
		request, err := http.NewRequest(http.MethodGet, front.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Authorization": {"Bearer t"}, "X-Remote-User": {"admin"}}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, reply.StatusCode, want)
		}
	}
	reply, err := http.Post(front.URL+"/apis", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /apis: %d", reply.StatusCode)
	}
}

func TestIndexOfSchemas(t *testing.T) {
	_, _, front := newHandler(t)
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: front.URL})
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(paths)); !slices.Equal(got, []string{"api/v1", "apis/apps/v1"}) {
		t.Errorf("schemas of %q", got)
	}
}

// TestVersions: a tenant has those of the kinds that it is served, and of its CRDs.
func TestVersions(t *testing.T) {
	handler, _, _ := newHandler(t)
	for tenant, want := range map[string][]string{
		red:  {"v1", "apps/v1", "apiregistration.k8s.io/v1"},
		blue: {"v1", "apps/v1", "apiregistration.k8s.io/v1", "example.com/v2", "example.com/v1", "example.com/v1beta1"},
	} {
		versions, err := handler.For(tenant, crdsOf(t)).Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, version := range versions {
			found = append(found, version.String())
		}
		if !slices.Equal(found, want) {
			t.Errorf("%s has %q, want %q", tenant, found, want)
		}
	}
}

// TestSuperClusterDown: the last documents are served as long as there are no
// others, and none are invented.
func TestSuperClusterDown(t *testing.T) {
	handler, super, front := newHandler(t)
	now := time.Now()
	handler.now = func() time.Time { return now }
	status := func() int {
		reply, err := http.Get(front.URL + "/api/v1")
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		return reply.StatusCode
	}
	super.down = true
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("without documents: %d", got)
	}
	super.down = false
	if got := status(); got != http.StatusOK {
		t.Errorf("when it is up: %d", got)
	}
	super.down, now = true, now.Add(2*lifetime)
	if got := status(); got != http.StatusOK {
		t.Errorf("when it is down again: %d", got)
	}
}
