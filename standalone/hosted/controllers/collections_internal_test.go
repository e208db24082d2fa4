package controllers

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestCollectionsOfEmptyPages: a page without objects is not a collection without any.
func TestCollectionsOfEmptyPages(t *testing.T) {
	g := NewWithT(t)
	recorded := fake.NewSimpleMetadataClient(fake.NewTestScheme())
	recorded.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &metav1.List{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
	})
	gears := collections{recorded}.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gears"})
	g.Expect(gears.Namespace("a").DeleteCollection(withEmpty(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	g.Expect(recorded.Actions()).To(ContainElement(HaveField("GetVerb()", "delete-collection")))
}

func TestCollections(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	pod := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "full", Name: "web"},
	}
	for name, tt := range map[string]struct {
		namespace string
		fails     bool
		want      []string
		items     int
	}{
		"a collection that is empty":         {"empty", false, []string{"list", "list"}, 0},
		"one that is not":                    {"full", false, []string{"list", "delete-collection", "list", "list"}, 1},
		"one that cannot be listed at first": {"empty", true, []string{"list", "delete-collection", "list", "list"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := fake.NewTestScheme()
			g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
			recorded := fake.NewSimpleMetadataClient(scheme, pod)
			fails := tt.fails
			recorded.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				defer func() { fails = false }()
				return fails, nil, errors.New("it cannot be listed")
			})
			of, ctx := collections{recorded}, withEmpty(t.Context())
			g.Expect(of.Resource(pods).Namespace(tt.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
			for range 2 { // what is known is used once
				found, err := of.Resource(pods).Namespace(tt.namespace).List(ctx, metav1.ListOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found.Items).To(HaveLen(tt.items))
			}
			var verbs []string
			for _, action := range recorded.Actions() {
				verbs = append(verbs, action.GetVerb())
			}
			g.Expect(verbs).To(Equal(tt.want))
		})
	}
}
