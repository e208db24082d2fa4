package provider

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// answers are a tenant's answers by path.
type answers map[string]any

// aggregatedType is the content type of discovery in apiservers since
// Kubernetes 1.27.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// send answers a request, with 404 for an unknown path.
func (a answers) send(r *http.Request) (*http.Response, error) {
	answer, ok := a[r.URL.Path]
	if status, failed := answer.(int); failed {
		return response(status, "text/plain", "no"), nil
	}
	if !ok {
		return response(http.StatusNotFound, "text/plain", "no such path"), nil
	}
	data, err := json.Marshal(answer)
	kind := "application/json"
	if _, aggregated := answer.(*apidiscoveryv2.APIGroupDiscoveryList); aggregated {
		kind = aggregatedType
	}
	return response(http.StatusOK, kind, string(data)), err
}

func response(status int, kind, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// discovering returns a cluster with a transport.
func discovering(t *testing.T, transport requests.RoundTripper) *Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &Cluster{config: &rest.Config{Host: "http://tenant"}, scheme: scheme, known: &servedKinds{}, http: &http.Client{Transport: transport}}
}

// group returns an API group in the answer of an apiserver with aggregated
// discovery.
func group(name, version string, freshness apidiscoveryv2.DiscoveryFreshness, kinds ...string) apidiscoveryv2.APIGroupDiscovery {
	v := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: freshness}
	for _, kind := range kinds {
		v.Resources = append(v.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: strings.ToLower(kind) + "s", ResponseKind: &metav1.GroupVersionKind{Group: name, Version: version, Kind: kind},
		})
	}
	return apidiscoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{v},
	}
}

func aggregated(groups ...apidiscoveryv2.APIGroupDiscovery) *apidiscoveryv2.APIGroupDiscoveryList {
	return &apidiscoveryv2.APIGroupDiscoveryList{Items: groups}
}

func resourceList(version string, kinds ...string) metav1.APIResourceList {
	list := metav1.APIResourceList{GroupVersion: version}
	for _, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
	}
	return list
}

// apiGroups returns the list of groups of an apiserver without aggregated
// discovery.
func apiGroups(versions ...schema.GroupVersion) metav1.APIGroupList {
	var list metav1.APIGroupList
	for _, v := range versions {
		version := metav1.GroupVersionForDiscovery{GroupVersion: v.String(), Version: v.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{
			Name: v.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		})
	}
	return list
}

func TestDiscover(t *testing.T) {
	const current, stale = apidiscoveryv2.DiscoveryFreshnessCurrent, apidiscoveryv2.DiscoveryFreshnessStale
	core := aggregated(group("", "v1", current, "Pod", "Node"))
	legacy := metav1.APIVersions{Versions: []string{"v1"}}
	networking := schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	metrics := schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"}
	for name, tc := range map[string]struct {
		answers  answers
		has, not []schema.GroupVersionKind
		fails    bool
	}{
		"all at once": {
			answers: answers{"/api": core, "/apis": aggregated(group("networking.k8s.io", "v1", current, "Ingress"))},
			has:     []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}, networking.WithKind("Ingress")},
			not:     []schema.GroupVersionKind{networking.WithKind("NetworkPolicy"), {Version: "v1", Kind: "Secret"}},
		},
		"each by itself, as before Kubernetes 1.26": {
			answers: answers{
				"/api": legacy, "/api/v1": resourceList("v1", "Pod"),
				"/apis": apiGroups(networking), "/apis/networking.k8s.io/v1": resourceList(networking.String(), "Ingress"),
			},
			has: []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}, networking.WithKind("Ingress")},
			not: []schema.GroupVersionKind{{Version: "v1", Kind: "Node"}},
		},
		"other kinds": {
			answers: answers{"/api": core, "/apis": aggregated(group("example.com", "v1", current, "Pod"))},
			has:     []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
			not:     []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Pod"}},
		},
		"an apiserver of the tenant's own is down": {
			answers: answers{"/api": core, "/apis": aggregated(group("metrics.k8s.io", "v1beta1", stale))},
			has:     []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		},
		"an apiserver of the tenant's own is down, each by itself": {
			answers: answers{
				"/api": legacy, "/api/v1": resourceList("v1", "Pod"),
				"/apis": apiGroups(metrics), "/apis/metrics.k8s.io/v1beta1": http.StatusServiceUnavailable,
			},
			has: []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		},
		// Otherwise the tenant would be engaged without the kinds of the group,
		// permanently.
		"a built-in group does not answer": {
			answers: answers{
				"/api": legacy, "/api/v1": resourceList("v1", "Pod"),
				"/apis": apiGroups(networking), "/apis/networking.k8s.io/v1": http.StatusServiceUnavailable,
			},
			fails: true,
		},
		"no answer": {answers: answers{"/api": http.StatusServiceUnavailable}, fails: true},
		"forbidden": {answers: answers{"/api": http.StatusForbidden}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := discovering(t, tc.answers.send)
			if err := c.discover(t.Context()); (err != nil) != tc.fails {
				t.Fatalf("got %v, want an error: %t", err, tc.fails)
			}
			for _, gvk := range tc.has {
				if !c.Serves(gvk) {
					t.Errorf("%s is not served", gvk)
				}
			}
			for _, gvk := range tc.not {
				if c.Serves(gvk) {
					t.Errorf("%s is served", gvk)
				}
			}
		})
	}
}

// TestDiscoverDoesNotWaitForever checks the timeout: a tenant that hangs, or asks
// to wait, occupies a worker, which the end of the program waits for.
func TestDiscoverDoesNotWaitForever(t *testing.T) {
	hangs := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	later := func(*http.Request) (*http.Response, error) {
		answer := response(http.StatusServiceUnavailable, "text/plain", "later")
		answer.Header.Set("Retry-After", "3600")
		return answer, nil
	}
	resets := func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }
	// Without aggregated discovery, each version takes a request.
	var versions []schema.GroupVersion
	for _, v := range clientgoscheme.Scheme.PrioritizedVersionsAllGroups() {
		if v.Group != "" {
			versions = append(versions, v)
		}
	}
	slow := func(r *http.Request) (*http.Response, error) {
		time.Sleep(probeTimeout - time.Second)
		return answers{"/api": metav1.APIVersions{}, "/apis": apiGroups(versions...)}.send(r)
	}
	for name, tc := range map[string]struct {
		send requests.RoundTripper
		most time.Duration
	}{
		"hangs":          {hangs, 2 * probeTimeout},
		"asks to wait":   {later, probeTimeout},
		"resets":         {resets, probeTimeout},
		"slow each time": {slow, discoverTimeout + probeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if err := discovering(t, tc.send).discover(t.Context()); err == nil {
					t.Error("no error")
				}
				if took := time.Since(began); took > tc.most {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
