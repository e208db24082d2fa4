package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// TestAnOlderSuperClusterHasACache checks that the cache has no options for
// kinds that the super cluster does not serve.
func TestAnOlderSuperClusterHasACache(t *testing.T) {
	served := map[string]any{
		"/api": metav1.APIVersions{Versions: []string{"v1"}},
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "Node"}, {Name: "events", Kind: "Event", Namespaced: true},
		}},
		"/apis": metav1.APIGroupList{},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	opts := cacheOptions(resources.All(resources.Agent{}, nil))
	var err error
	if opts.Scheme, err = newScheme(); err != nil {
		t.Fatal(err)
	}
	if opts.Mapper, err = apiutil.NewDynamicRESTMapper(config, server.Client()); err != nil {
		t.Fatal(err)
	}
	all := len(opts.ByObject)
	if _, err := newCache(config, opts); err != nil {
		t.Errorf("no cache: %v", err)
	}
	if len(opts.ByObject) != all {
		t.Error("the options, which are the caller's, were changed")
	}

	// The kinds of a super cluster that does not answer are unknown.
	served["/apis"], served["/api"] = http.StatusInternalServerError, "no list"
	if opts.Mapper, err = apiutil.NewDynamicRESTMapper(config, server.Client()); err != nil {
		t.Fatal(err)
	}
	if _, err := newCache(config, opts); err == nil {
		t.Error("a cache of a super cluster that does not answer")
	}
}
