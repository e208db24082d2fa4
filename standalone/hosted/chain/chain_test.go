package chain_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// TestEqualNames writes and reads objects of equal names in two tenants.
func TestEqualNames(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := add(t, c, "red")
	_, blue := add(t, c, "blue")
	createNamespace(t, red, "team")
	createNamespace(t, blue, "team")
	configMaps := red.CoreV1().ConfigMaps("team")
	others := blue.CoreV1().ConfigMaps("team")
	before, err := others.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	// Without a version, a watch lists first, which may be after all that follows.
	watched, err := others.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	g.Expect(err).NotTo(HaveOccurred())
	defer watched.Stop()

	_, err = configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"of": "red"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = others.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"of": "blue"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = configMaps.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"data":{"more":"red"}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = others.Patch(t.Context(), "x", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"applied":"blue"}}`), metav1.PatchOptions{FieldManager: "test"})
	g.Expect(err).NotTo(HaveOccurred())

	got, err := configMaps.Get(t.Context(), "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Data).To(Equal(map[string]string{"of": "red", "more": "red"}))
	got, err = others.Get(t.Context(), "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Data).To(Equal(map[string]string{"of": "blue", "applied": "blue"}))
	list, err := configMaps.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(1))

	for _, want := range []watch.EventType{watch.Added, watch.Modified} {
		var event watch.Event
		g.Eventually(watched.ResultChan(), later).Should(Receive(&event))
		g.Expect(event.Type).To(Equal(want))
		g.Expect(event.Object.(*corev1.ConfigMap).Data).To(HaveKeyWithValue("of", "blue"))
	}
	g.Expect(configMaps.Delete(t.Context(), "x", metav1.DeleteOptions{})).To(Succeed())
	_, err = others.Get(t.Context(), "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestFailsClosed: a request without a tenant, or of one that is not served,
// reads and writes nothing.
func TestFailsClosed(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	gone, client := add(t, c, "red")
	_, err := client.CoreV1().ConfigMaps("team").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	handler := c.Handler(gone)
	c.Remove(gone)
	for name, ctx := range map[string]context.Context{
		"removed":       t.Context(),
		"other context": keyspace.NewContext(t.Context(), "blue"),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/configmaps", nil))
			g.Expect(response.Code).To(Equal(http.StatusInternalServerError))
			g.Expect(response.Body.String()).NotTo(ContainSubstring("ConfigMapList"))
			_, err := client.CoreV1().ConfigMaps("team").List(ctx, metav1.ListOptions{})
			g.Expect(err).To(HaveOccurred())
		})
	}
	t.Run("no name", func(t *testing.T) {
		_, err := c.Add(chain.Spec{Name: ""})
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
	t.Run("added twice", func(t *testing.T) {
		g := NewWithT(t)
		_, err := c.Add(chain.Spec{Name: "red"})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = c.Add(chain.Spec{Name: "red"})
		g.Expect(err).To(MatchError(ContainSubstring("exists already")))
	})
}

// TestRequiresAuthentication: only the control plane itself needs no credentials.
func TestRequiresAuthentication(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	tenant, _ := add(t, c, "red")
	response := httptest.NewRecorder()
	c.Handler(tenant).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/configmaps", nil))
	g.Expect(response.Code).To(Equal(http.StatusUnauthorized))
}

// TestRunsNoHooks: a hook of upstream would work without a tenant.
func TestRunsNoHooks(t *testing.T) {
	g := NewWithT(t)
	c, all := startChain(t)
	_, client := add(t, c, "red")
	g.Eventually(func(g Gomega) {
		checks, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").DoRaw(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(checks)).NotTo(ContainSubstring("poststarthook"))
	}, later).Should(Succeed())
	written, err := all.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written.Kvs).To(BeEmpty())
}
