package stream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// TestStream: a stream has all objects of its kinds, then their changes.
func TestStream(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.Put("red", "pods", pod("web", "1"))
	h.Put("red", "configmaps", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "settings", Labels: map[string]string{"value": "1"}},
		Data:       map[string]string{"content": "none of the metadata"},
	})
	h.Put("red", "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "of-no-kind-that-is-watched"}})
	got := h.watch("red", pods(), configMaps())
	got.expect(t,
		"begin pods", "+pods team/web 1", "listed pods",
		"begin configmaps", "+configmaps team/settings 1", "listed configmaps")

	h.Put("red", "pods", pod("web", "2"))
	got.expect(t, "+pods team/web 2")
	h.Remove("configmaps", "team/settings")
	got.expect(t, "-configmaps team/settings 1")
	h.Remove("pods", "team/web")
	got.expect(t, "-pods team/web 2")
	NewWithT(t).Expect(h.failures()).To(BeEmpty())
}

// TestOtherTenants: a stream has nothing of a tenant whose name begins with its
// own, or that its own begins with, and nothing that belongs to no tenant.
func TestOtherTenants(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := startHost(t)
	others := func(value string) {
		for _, tenant := range []string{"red1", "re", "red-1", "blue"} {
			h.Put(tenant, "pods", pod("web", value))
		}
		for _, key := range []string{"pods/team/web", "/pods/team/web", "red", "red/pods", "red//pods/team/web", "red/podspods/team/web"} {
			_, err := h.Client.Put(context.Background(), keyspace.Root+key, "of no tenant")
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	others("listed")
	got := h.watch("red", pods())
	got.expect(t, "begin pods", "listed pods")
	others("changed")
	h.Put("red", "pods", pod("web", "own"))
	got.expect(t, "+pods team/web own")
	g.Expect(h.failures()).To(BeEmpty())
}

// TestLastStates: a deletion comes with the state that was deleted, although
// the stream has not sent it, and precedes another object of the name.
func TestLastStates(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := startHost(t)
	h.Put("red", "pods", pod("web", "1"))
	got := h.watch("red", pods())
	got.expect(t, "begin pods", "+pods team/web 1", "listed pods")
	// One transaction per object, so that the feed has all of them at once or
	// one by one: the deletion and its state come in either case.
	for i := range 50 {
		value := strconv.Itoa(i)
		h.Put("red", "pods", pod("web", "deleting-"+value))
		h.Remove("pods", "team/web")
		h.Put("red", "pods", pod("web", "next-"+value))
		g.Eventually(func() string {
			for {
				select {
				case frame := <-got:
					if frame[0] == '-' {
						return frame
					}
				case <-time.After(soon):
					return "nothing"
				}
			}
		}, soon).Should(Equal("-pods team/web deleting-" + value))
		got.expect(t, "+pods team/web next-"+value)
	}
}

// TestSelector: an object that is selected no more has gone, and others are
// never named.
func TestSelector(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	shown := func(name, value, show string) *corev1.Pod {
		p := pod(name, value)
		p.Labels["show"] = show
		return p
	}
	h.Put("red", "pods", shown("web", "1", "yes"))
	h.Put("red", "pods", shown("other", "1", "no"))
	kind := pods()
	kind.Selector, kind.Since = labels.SelectorFromSet(labels.Set{"show": "yes"}), 1<<40
	got := h.watch("red", kind)
	got.expect(t, "begin pods", "+pods team/web 1 yes", "listed pods")
	h.Put("red", "pods", shown("other", "2", "no"))
	h.Remove("pods", "team/other")
	h.Put("red", "pods", shown("web", "2", "no"))
	got.expect(t, "-pods team/web")
	h.Remove("pods", "team/web")
	h.Put("red", "pods", shown("web", "3", "yes"))
	got.expect(t, "+pods team/web 3 yes")
}

// TestSince: a client that continues gets only what has changed, and the names
// of the rest.
func TestSince(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.Put("red", "pods", pod("a", "1"))
	h.Put("red", "pods", pod("b", "1"))
	kind := pods()
	kind.Since = h.Put("red", "pods", pod("c", "1"))
	h.Put("red", "pods", pod("b", "2"))
	h.Remove("pods", "team/c")
	h.Put("red", "pods", pod("d", "1"))
	got := h.watch("red", kind)
	got.expect(t, "begin pods", "=pods team/a", "+pods team/b 2", "+pods team/d 1", "listed pods")
	h.Put("red", "pods", pod("a", "2"))
	got.expect(t, "+pods team/a 2")
}

// TestVersions: objects are sent in the version of the request, whatever they
// are stored in.
func TestVersions(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.Put("red", "deployments", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "web", Labels: map[string]string{"value": "1"},
	}})
	of := func(version string) watchstream.Kind {
		return watchstream.Kind{Resource: appsv1.SchemeGroupVersion.WithResource("deployments").GroupResource().WithVersion(version)}
	}
	h.watch("red", of("v1")).expect(t, "begin deployments", "+deployments team/web 1", "listed deployments")
	h.watch("red", of("v1beta1")).expect(t, "begin deployments", "+deployments team/web 1", "listed deployments")
}

// TestOnlyThePlatform: other clients get what the apiserver answers, and so do
// other paths.
func TestOnlyThePlatform(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := startHost(t)
	query := watchstream.Query([]watchstream.Kind{pods()}).Encode()
	g.Expect(get(t, h.serve("red", false), http.MethodGet, query).StatusCode).To(Equal(elsewhere))
	platform := h.serve("red", true)
	g.Expect(get(t, platform, http.MethodPost, query).StatusCode).To(Equal(http.StatusMethodNotAllowed))
	for _, wrong := range []string{"", "kind=pods", "kind=example.com/v1/widgets", "kind=/v2/pods"} {
		g.Expect(get(t, platform, http.MethodGet, wrong).StatusCode).To(Equal(http.StatusBadRequest), wrong)
	}
	response, err := platform.Client().Get(platform.URL + watchstream.Path + "/red")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(elsewhere))
}

// TestDamagedObjects: a stream ends at an object that it cannot send, which its
// client would otherwise take for deleted. The reason does not quote the object.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := startHost(t)
	h.Write("red", "pods", "team/web", []byte("secret of the tenant"))
	got := h.watch("red", pods())
	g.Eventually(got, soon).Should(BeClosed())
	g.Eventually(h.failures, soon).Should(HaveLen(1))
	g.Expect(h.failures()[0].Error()).To(And(ContainSubstring("decode Pod team/web"), Not(ContainSubstring("secret"))))
	h.Remove("pods", "team/web")
	h.watch("red", pods()).expect(t, "begin pods", "listed pods")
	// The name is part of the object, too.
	moved := h.watch("blue", pods())
	moved.expect(t, "begin pods", "listed pods")
	h.Put("blue", "pods", pod("web", "1"))
	moved.expect(t, "+pods team/web 1")
}

// TestSlowClient: a client that does not read ends its own stream only.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := startHost(t)
	large := pod("large", "1")
	large.Annotations = map[string]string{"large": string(make([]byte, 200<<10))}
	for i := range 200 {
		large.Name = "large-" + strconv.Itoa(i)
		h.Put("red", "pods", large)
	}
	slow := get(t, h.serve("red", true), http.MethodGet, watchstream.Query([]watchstream.Kind{pods()}).Encode())
	h.Put("blue", "pods", pod("web", "1"))
	h.watch("blue", pods()).expect(t, "begin pods", "+pods team/web 1", "listed pods")
	_, err := io.CopyN(io.Discard, slow.Body, 1<<20)
	g.Expect(err).NotTo(HaveOccurred(), "it continues when the client does")
}

// TestEnd: a stream ends with the feed, which is no failure.
func TestEnd(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := startHost(t)
	h.Stop()
	g.Eventually(h.watch("red", pods()), soon).Should(BeClosed())
	g.Expect(h.failures()).To(BeEmpty())
}

// TestSmallRecords: a list is sent in small records of TLS, so that the client,
// which is a syncer with a connection to each tenant, keeps small buffers.
func TestSmallRecords(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	h := startHost(t)
	large := pod("large", "1")
	large.Annotations = map[string]string{"large": strings.Repeat("x", 300<<10)}
	h.Put("red", "pods", large)
	server := h.serve("red", true)
	records := &records{}
	transport := server.Client().Transport.(*http.Transport)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return recordsConn{conn, records}, err
	}
	response := get(t, server, http.MethodGet, watchstream.Query([]watchstream.Kind{pods()}).Encode())
	_, err := io.CopyN(io.Discard, response.Body, 300<<10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(records.largest.Load()).To(BeNumerically("<", 5<<10))
}
