package discovered_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/discovered"
)

// apiserver serves documents of discovery.
type apiserver struct {
	*httptest.Server

	mu     sync.Mutex
	groups []apidiscovery.APIGroupDiscovery
	status int
	// sent counts the documents that were sent.
	sent int
}

func serve(t *testing.T, groups ...apidiscovery.APIGroupDiscovery) *apiserver {
	t.Helper()
	a := &apiserver{groups: groups, status: http.StatusOK}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

// set changes the groups.
func (a *apiserver) set(groups ...apidiscovery.APIGroupDiscovery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.groups = groups
}

// fail answers all requests with a status.
func (a *apiserver) fail(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

func (a *apiserver) documents() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent
}

func (a *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status != http.StatusOK {
		w.WriteHeader(a.status)
		return
	}
	list := apidiscovery.APIGroupDiscoveryList{Items: a.groups}
	if r.URL.Path == "/api" {
		list.Items = []apidiscovery.APIGroupDiscovery{group("", "pods", "Pod")}
	}
	document, err := json.Marshal(list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256(document)
	tag := `"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a.sent++
	_, _ = w.Write(document)
}

// group returns a group with one resource.
func group(name, resource, kind string) apidiscovery.APIGroupDiscovery {
	return apidiscovery.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Versions: []apidiscovery.APIVersionDiscovery{{
			Version: "v1", Freshness: apidiscovery.DiscoveryFreshnessCurrent,
			Resources: []apidiscovery.APIResourceDiscovery{{
				Resource: resource, Scope: apidiscovery.ScopeNamespace, Verbs: metav1.Verbs{"list", "delete"},
				ResponseKind: &metav1.GroupVersionKind{Group: name, Version: "v1", Kind: kind},
			}},
		}},
	}
}

func (a *apiserver) client(t *testing.T, shared *discovered.Shared) *discovered.Client {
	t.Helper()
	g := NewWithT(t)
	config := &rest.Config{Host: a.URL}
	plain, err := discovery.NewDiscoveryClientForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := discovered.NewClient(config, plain, shared)
	g.Expect(err).NotTo(HaveOccurred())
	return client
}

func apis(t *testing.T, client *discovered.Client) *discovered.APIs {
	t.Helper()
	found, err := client.APIs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

// kinds returns the kinds that a client discovers.
func kinds(t *testing.T, client *discovered.Client) []string {
	t.Helper()
	lists, err := client.ServerPreferredNamespacedResources()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	found := []string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			found = append(found, resource.Kind)
		}
	}
	return found
}

func deployments() apidiscovery.APIGroupDiscovery { return group("apps", "deployments", "Deployment") }

// servePair serves the same APIs for two control planes, whose clients share what
// they discover.
func servePair(t *testing.T) (red, blue *apiserver, ofRed, ofBlue *discovered.Client) {
	t.Helper()
	shared := discovered.NewShared()
	red, blue = serve(t, deployments()), serve(t, deployments())
	return red, blue, red.client(t, shared), blue.client(t, shared)
}

// TestSharing: control planes share what they discovered only while all of it is
// equal.
func TestSharing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	red, blue, ofRed, ofBlue := servePair(t)
	g.Expect(apis(t, ofRed)).To(BeIdenticalTo(apis(t, ofBlue)))

	red.set(deployments(), group("example.com", "widgets", "Widget"))
	g.Expect(apis(t, ofRed)).NotTo(BeIdenticalTo(apis(t, ofBlue)))
	g.Expect(kinds(t, ofRed)).To(ConsistOf("Pod", "Deployment", "Widget"))
	g.Expect(kinds(t, ofBlue)).To(ConsistOf("Pod", "Deployment"))

	// A resource of the same name has another meaning elsewhere.
	blue.set(deployments(), group("example.com", "widgets", "Gadget"))
	g.Expect(kinds(t, ofBlue)).To(ConsistOf("Pod", "Deployment", "Gadget"))
	g.Expect(kinds(t, ofRed)).To(ConsistOf("Pod", "Deployment", "Widget"))

	red.set(deployments())
	blue.set(deployments())
	g.Expect(apis(t, ofRed)).To(BeIdenticalTo(apis(t, ofBlue)))
	g.Expect(kinds(t, ofRed)).To(ConsistOf("Pod", "Deployment"))
}

// TestUnchanged: documents are not sent again while they are the same, and all
// of them when one has changed.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	red := serve(t, deployments())
	client := red.client(t, discovered.NewShared())
	first := apis(t, client)
	g.Expect(apis(t, client)).To(BeIdenticalTo(first))
	g.Expect(red.documents()).To(Equal(2))
	red.set()
	g.Expect(kinds(t, client)).To(ConsistOf("Pod"))
}

// TestMapper: a mapper has the kinds of its own control plane, as of its last
// reset.
func TestMapper(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	shared := discovered.NewShared()
	red, blue := serve(t, deployments()), serve(t, deployments(), group("example.com", "widgets", "Widget"))
	ofRed, ofBlue := discovered.NewMapper(red.client(t, shared)), discovered.NewMapper(blue.client(t, shared))
	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	mapping, err := ofBlue.RESTMapping(widget)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mapping.Resource).To(Equal(resource))
	g.Expect(ofBlue.KindFor(resource)).To(Equal(widget.WithVersion("v1")))
	g.Expect(ofBlue.KindsFor(resource)).To(HaveLen(1))
	g.Expect(ofBlue.ResourceFor(resource)).To(Equal(resource))
	g.Expect(ofBlue.ResourcesFor(resource)).To(HaveLen(1))
	g.Expect(ofBlue.RESTMappings(widget)).To(HaveLen(1))
	g.Expect(ofBlue.ResourceSingularizer("widgets")).To(Equal("widget"))
	_, err = ofRed.RESTMapping(widget)
	g.Expect(meta.IsNoMatchError(err)).To(BeTrue(), "%v", err)

	red.set(deployments(), group("example.com", "widgets", "Widget"))
	blue.set(deployments())
	_, err = ofRed.RESTMapping(widget)
	g.Expect(meta.IsNoMatchError(err)).To(BeTrue(), "it was not reset")
	ofRed.Reset()
	ofBlue.Reset()
	_, err = ofRed.RESTMapping(widget)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = ofBlue.RESTMapping(widget)
	g.Expect(meta.IsNoMatchError(err)).To(BeTrue(), "%v", err)
}

// TestFailures: a control plane that does not answer has no APIs of another, nor
// its own of before. Groups that do not respond are reported.
func TestFailures(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	red, blue, ofRed, ofBlue := servePair(t)
	g.Expect(kinds(t, ofRed)).To(HaveLen(2))
	red.fail(http.StatusServiceUnavailable)
	_, err := ofRed.APIs()
	g.Expect(err).To(MatchError(ContainSubstring("discover /api: the apiserver answers 503")))
	_, err = discovered.NewMapper(ofRed).RESTMapping(schema.GroupKind{Kind: "Pod"})
	g.Expect(err).To(MatchError(ContainSubstring("503")))
	_, err = ofRed.ServerPreferredResources()
	g.Expect(err).To(HaveOccurred())
	g.Expect(kinds(t, ofBlue)).To(HaveLen(2))

	stale := group("metrics.k8s.io", "pods", "PodMetrics")
	stale.Versions[0].Freshness = apidiscovery.DiscoveryFreshnessStale
	blue.set(deployments(), stale)
	_, err = ofBlue.ServerPreferredResources()
	failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
	g.Expect(ok).To(BeTrue(), "%v", err)
	g.Expect(failed).To(HaveKey(schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1"}))
	red.fail(http.StatusOK)
	g.Expect(kinds(t, ofRed)).To(HaveLen(2))
}

// TestForgotten: what no client uses any more takes no memory.
func TestForgotten(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	shared := discovered.NewShared()
	red := serve(t, deployments())
	client := red.client(t, shared)
	apis(t, client)
	g.Expect(discovered.Kept(shared)).To(Equal(1))
	red.set()
	apis(t, client)
	g.Eventually(func() int {
		runtime.GC()
		return discovered.Kept(shared)
	}, time.Minute).Should(Equal(1))
	runtime.KeepAlive(client)
}
