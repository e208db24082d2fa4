package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// schemeWithDefinitions has more than a host serves in streams.
func schemeWithDefinitions(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetesscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func metadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}

// streamsOf returns the stream of a tenant whose apiserver answers so.
func streamsOf(t *testing.T, answer requests.RoundTripper) changes {
	t.Helper()
	scheme := schemeWithDefinitions(t)
	narrow := map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{"a": "b"})}}
	return changes{&Cluster{
		config: &rest.Config{Host: "https://tenant.example.com/prefix"}, scheme: scheme, http: &http.Client{Transport: answer},
		mapper: newMapper(staticMapper(scheme, []schema.GroupKind{{Group: storagev1.GroupName, Kind: "StorageClass"}})),
	}, newHeld(scheme, narrow)}
}

func TestKindsOfAStream(t *testing.T) {
	c := streamsOf(t, nil)
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	for name, tt := range map[string]struct {
		example runtime.Object
		want    string // empty for a watch of its own
	}{
		"a kind":                        {&corev1.Pod{}, "/v1, Resource=pods false "},
		"one without namespaces":        {&storagev1.StorageClass{}, "storage.k8s.io/v1, Resource=storageclasses false "},
		"metadata":                      {metadataOf(corev1.SchemeGroupVersion.WithKind("ConfigMap")), "/v1, Resource=configmaps true "},
		"events from the super cluster": {&corev1.Event{}, "/v1, Resource=events false tenancy.x-k8s.io/from-super=true"},
		"objects with a label":          {metadataOf(corev1.SchemeGroupVersion.WithKind("Secret")), "/v1, Resource=secrets true a=b"},
		"a custom resource":             {widget, ""},
		"definitions":                   {&apiextensionsv1.CustomResourceDefinition{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := c.kindOf(tt.example)
			got := ""
			if ok {
				got = kind.Resource.String()
				if kind.Metadata {
					got += " true "
				} else {
					got += " false "
				}
				if kind.Selector != nil {
					got += kind.Selector.String()
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOpenAStream(t *testing.T) {
	kinds := []watchstream.Kind{{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Since: 7}}
	for name, tt := range map[string]struct {
		code        int
		contentType string
		none, fails bool
	}{
		"a host":                              {code: 200, contentType: watchstream.ContentType},
		"another answer":                      {code: 200, contentType: "application/json", none: true},
		"an apiserver without streams":        {code: 404, none: true},
		"one that authorizes no such request": {code: 403, none: true},
		"a host that lacks a kind":            {code: 400, none: true},
		"a host that is overloaded":           {code: 429, fails: true},
		"one that is starting":                {code: 503, fails: true},
		"one that does not know the platform": {code: 401, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			c := streamsOf(t, func(r *http.Request) (*http.Response, error) {
				asked = r.URL.String()
				if !requests.IsWatch(r) {
					t.Error("the request is no watch: it would have a timeout, and a limit for a whole answer")
				}
				return &http.Response{
					StatusCode: tt.code, Header: http.Header{"Content-Type": {tt.contentType}}, Body: io.NopCloser(strings.NewReader("x")),
				}, nil
			})
			body, err := c.open(context.Background(), kinds)
			if errors.Is(err, informer.ErrNoStream) != tt.none || (err != nil) != (tt.none || tt.fails) {
				t.Errorf("got %v", err)
			}
			if err == nil {
				_ = body.Close()
			}
			if !strings.HasPrefix(asked, "https://tenant.example.com/prefix"+watchstream.Path+"?") {
				t.Errorf("it asked %s", asked)
			}
		})
	}
}

// TestAStreamThatOpensAgain verifies the tenant's identity, with the newest
// revision that was read.
func TestAStreamThatOpensAgain(t *testing.T) {
	w, _ := verifications(t.Context(), nil)
	query := watchstream.Query([]watchstream.Kind{{Since: 5}, {Since: 9}, {Since: 7}})
	open(t, w, watchstream.Path+"?"+query.Encode())
	if got := w.newest(); got != "9" {
		t.Errorf("the newest revision is %q, want 9", got)
	}
	if !w.asking.Load() {
		t.Error("the identity is not verified")
	}
}

// TestHeld: a cache holds the objects that are selected, reduced, and of other
// kinds everything but managed fields.
func TestHeld(t *testing.T) {
	scheme := schemeWithDefinitions(t)
	marked := func(obj any) (any, error) {
		obj.(metav1.Object).SetName("reduced")
		return obj, nil
	}
	h := newHeld(scheme, map[client.Object]cache.ByObject{
		&corev1.Secret{}:    {Transform: marked},
		&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"a": "b"})},
	})
	full := metav1.ObjectMeta{Name: "full", ManagedFields: []metav1.ManagedFieldsEntry{{}}}
	for name, tt := range map[string]struct {
		obj  metav1.Object
		want string
	}{
		"reduced":            {&corev1.Secret{ObjectMeta: full}, "reduced"},
		"reduced metadata":   {metadataOf(corev1.SchemeGroupVersion.WithKind("Secret")), "reduced"},
		"with its own kind":  {&corev1.Pod{ObjectMeta: full}, "full"},
		"selected, not less": {&corev1.ConfigMap{ObjectMeta: full}, "full"},
		"of an unknown kind": {&unstructured.Unstructured{Object: map[string]any{"kind": "Widget", "metadata": map[string]any{"name": "full"}}}, "full"},
		"metadata of a kind": {&metav1.PartialObjectMetadata{ObjectMeta: full}, "full"},
	} {
		got, err := h.transform(tt.obj)
		if err != nil || got.(metav1.Object).GetName() != tt.want {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if tt.want == "full" && len(got.(metav1.Object).GetManagedFields()) > 0 {
			t.Errorf("%s: managed fields are held", name)
		}
	}

	var asked []string
	source := &toolscache.ListWatch{ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		asked = append(asked, options.LabelSelector)
		return nil, errors.New("not now")
	}}
	var narrowed toolscache.ListerWatcher
	create := h.narrow(func(source toolscache.ListerWatcher, _ runtime.Object, _ time.Duration, _ toolscache.Indexers) toolscache.SharedIndexInformer {
		narrowed = source
		return nil
	})
	for _, example := range []runtime.Object{&corev1.ConfigMap{}, &corev1.Pod{}} {
		create(source, example, 0, nil)
		_, _ = toolscache.ToListerWatcherWithContext(narrowed).ListWithContext(t.Context(), metav1.ListOptions{})
	}
	if len(asked) != 2 || asked[0] != "a=b" || asked[1] != "" {
		t.Errorf("it lists with selectors %q", asked)
	}
}
