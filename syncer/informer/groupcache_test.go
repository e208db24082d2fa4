package informer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
)

// fakeAPI answers lists with one object of the name "listed", and watches with
// nothing. It counts the paths of lists.
type fakeAPI struct {
	mu    sync.Mutex
	lists map[string]int
}

func (f *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if r.URL.Query().Get("watch") != "" {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			answer.StatusCode, answer.Body = http.StatusNotFound, http.NoBody
			return answer, nil
		}
		reader, writer := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(r.Context().Err()) })
		answer.Body = reader
		return answer, nil
	}
	f.mu.Lock()
	f.lists[r.URL.Path]++
	f.mu.Unlock()
	kind := map[string]string{"/api/v1/configmaps": "ConfigMap", "/api/v1/secrets": "Secret"}[r.URL.Path]
	answer.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"5"},
		"items":[{"metadata":{"name":"listed","namespace":"shop-a","uid":"1","resourceVersion":"3"}}]}`, kind)))
	return answer, nil
}

func (f *fakeAPI) listed(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[path]
}

// inCache runs a test with the cache of a group whose host streams ConfigMaps.
func inCache(t *testing.T, test func(t *testing.T, c *GroupCache, h *fakeHost, api *fakeAPI)) {
	t.Helper()
	inStream(t, func(t *testing.T, ctx context.Context, h *fakeHost) {
		options := inNamespaces()
		options.Source = h.source()
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
		api := &fakeAPI{lists: map[string]int{}}
		c := NewGroup(ctx, options).NewCache(CacheOptions{
			Config: &rest.Config{Host: "http://api.example"}, HTTPClient: &http.Client{Transport: api}, Scheme: scheme.Scheme, Mapper: mapper,
			Transform: func(obj any) (any, error) {
				obj.(client.Object).SetAnnotations(map[string]string{"transformed": "true"})
				return obj, nil
			},
		})
		test(t, c, h, api)
	})
}

func informerOf(t *testing.T, c *GroupCache, obj client.Object) cache.Informer {
	t.Helper()
	i, err := c.GetInformer(t.Context(), obj, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	return i
}

// TestStreamedKindsNeedNoClient: the informers of an idle tenant are all that
// its cache has.
func TestStreamedKindsNeedNoClient(t *testing.T) {
	inCache(t, func(t *testing.T, c *GroupCache, h *fakeHost, api *fakeAPI) {
		i := informerOf(t, c, &corev1.ConfigMap{})
		h.send(t, only(watchstream.Begin, 0, ""), at(watchstream.Put, 3, "a1", "x"), only(watchstream.Listed, 5, ""))
		if !i.HasSynced() || informerOf(t, c, &corev1.ConfigMap{}) != i {
			t.Error("the informer has not synced, or is not the only one of its kind")
		}
		if c.complete != nil || api.listed("/api/v1/configmaps") != 0 {
			t.Error("controller-runtime's cache was made")
		}
	})
}

// TestReadersSeeStreamedObjects: controller-runtime's cache has the informers
// that there are already.
func TestReadersSeeStreamedObjects(t *testing.T) {
	inCache(t, func(t *testing.T, c *GroupCache, h *fakeHost, api *fakeAPI) {
		i := informerOf(t, c, &corev1.ConfigMap{})
		h.send(t, only(watchstream.Begin, 0, ""), at(watchstream.Put, 3, "a1", "x"), only(watchstream.Listed, 5, ""))
		found := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop-a", Name: "a1"}, found); err != nil || found.Annotations["transformed"] == "" {
			t.Errorf("got %v: %v", found, err)
		}
		err := c.IndexField(t.Context(), &corev1.ConfigMap{}, "value", func(obj client.Object) []string {
			return []string{obj.(*corev1.ConfigMap).Data["value"]}
		})
		if err != nil {
			t.Fatal(err)
		}
		h.send(t, at(watchstream.Put, 6, "a2", "y"))
		list := &corev1.ConfigMapList{}
		if err := c.List(t.Context(), list, client.MatchingFields{"value": "y"}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "a2" {
			t.Errorf("listed %v: %v", list.Items, err)
		}
		if informerOf(t, c, &corev1.ConfigMap{}) != i {
			t.Error("a second informer was made")
		}
		blocked, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
		if err != nil || blocked != i {
			t.Errorf("a caller that waits gets another informer: %v", err)
		}
		ofKind, err := c.GetInformerForKind(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err != nil || ofKind != i {
			t.Errorf("by its kind, it is another informer: %v", err)
		}
		if !c.WaitForCacheSync(t.Context()) || api.listed("/api/v1/configmaps") != 0 {
			t.Error("it has not synced, or was listed")
		}
	})
}

// TestOtherKindsAreWatched: those that the stream does not serve.
func TestOtherKindsAreWatched(t *testing.T) {
	inCache(t, func(t *testing.T, c *GroupCache, _ *fakeHost, api *fakeAPI) {
		i := informerOf(t, c, &corev1.Secret{})
		if !i.HasSynced() || api.listed("/api/v1/secrets") != 1 {
			t.Errorf("it has not synced, after %d lists", api.listed("/api/v1/secrets"))
		}
		found := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop-a", Name: "listed"}, found); err != nil {
			t.Error(err)
		}
		if err := c.List(t.Context(), &corev1.ConfigMapList{}); err == nil {
			t.Error("a kind without an informer is read")
		}
	})
}

// TestStreamedKindsOfAHostWithoutStreams: their informers watch for themselves.
func TestStreamedKindsOfAHostWithoutStreams(t *testing.T) {
	inCache(t, func(t *testing.T, c *GroupCache, h *fakeHost, api *fakeAPI) {
		h.err = fmt.Errorf("open: %w", ErrNoStream)
		i := informerOf(t, c, &corev1.ConfigMap{})
		if !i.HasSynced() || api.listed("/api/v1/configmaps") != 1 {
			t.Errorf("it has not synced, after %d lists", api.listed("/api/v1/configmaps"))
		}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop-a", Name: "listed"}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
		if informerOf(t, c, &corev1.ConfigMap{}) != i {
			t.Error("a second informer was made")
		}
	})
}

// TestARemovedInformerIsForgotten: as by controller-runtime's cache.
func TestARemovedInformerIsForgotten(t *testing.T) {
	inCache(t, func(t *testing.T, c *GroupCache, _ *fakeHost, _ *fakeAPI) {
		informerOf(t, c, &corev1.Secret{})
		if err := c.RemoveInformer(t.Context(), &corev1.Secret{}); err != nil {
			t.Fatal(err)
		}
		if err := c.List(t.Context(), &corev1.SecretList{}); err == nil {
			t.Error("objects are read without an informer")
		}
	})
}
