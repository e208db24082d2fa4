package hosted_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
)

// TestKindsOfBodies: the kind as which an apiserver takes a body is known for each
// resource that it serves.
func TestKindsOfBodies(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "bodies", Shared: true})
	_, lists, err := clientOf(t, plane.RESTConfig()).Discovery().ServerGroupsAndResources()
	g.Expect(err).NotTo(HaveOccurred())
	compared := 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for _, r := range list.APIResources {
			if strings.HasSuffix(r.Kind, "Options") || !slices.Contains(r.Verbs, "create") && !slices.Contains(r.Verbs, "update") {
				continue // of requests that are passed on, or have no body
			}
			want := version.WithKind(r.Kind)
			if r.Version != "" {
				want.Group, want.Version = r.Group, r.Version
			}
			info := &apirequest.RequestInfo{Verb: "create", APIGroup: version.Group, APIVersion: version.Version}
			info.Resource, info.Subresource, _ = strings.Cut(r.Name, "/")
			g.Expect(inflight.AssumedKind(info, hosted.DecodedTypes())).To(Equal(want), list.GroupVersion+" "+r.Name)
			compared++
		}
	}
	g.Expect(compared).To(BeNumerically(">", 80))
}
