package hosted_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/internal/cardinality"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestMetricsOfBuiltInAPIs tests that no API which a control plane has from the
// beginning is taken for one that a tenant has named.
func TestMetricsOfBuiltInAPIs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, all, err := clientOf(t, runReady(t, shared, hosted.Spec{Name: "metrics"}).RESTConfig()).Discovery().ServerGroupsAndResources()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(all)).To(BeNumerically(">", 20))
	limits := cardinality.Limits()
	allows := func(label, value string) {
		t.Helper()
		if !slices.Contains(strings.Split(limits["apiserver_request_total,"+label], ","), value) {
			t.Errorf("%s is unexpected: %q", label, value)
		}
	}
	for _, list := range all {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		allows("group", version.Group)
		allows("version", version.Version)
		for _, each := range list.APIResources {
			resource, subresource, _ := strings.Cut(each.Name, "/")
			allows("resource", resource)
			allows("subresource", subresource)
		}
	}
}
