package sharedcrds

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestBasis: whatever the steps of a CRD depend on changes their basis.
func TestBasis(t *testing.T) {
	published := &publication{applicable: labels.SelectorFromSet(labels.Set{"tier": "gold"})}
	subjectOf := func(change func(*subject)) *subject {
		of := &subject{name: "widgets.example.com", published: published, tenant: &tenancyv1alpha1.VirtualCluster{}, policy: LocalCRDFirst}
		change(of)
		return of
	}
	was := subjectOf(func(*subject) {}).basis("7")
	for name, tt := range map[string]struct {
		change  func(*subject)
		version string
		same    bool
	}{
		"nothing":          {func(*subject) {}, "7", true},
		"another label":    {func(of *subject) { of.tenant.Labels = map[string]string{"tier": "silver"} }, "7", true},
		"the range":        {func(of *subject) { of.tenant.Labels = map[string]string{"tier": "gold"} }, "7", false},
		"the publication":  {func(of *subject) { changed := *published; of.published = &changed }, "7", false},
		"its recall":       {func(of *subject) { of.published = nil }, "7", false},
		"the policy":       {func(of *subject) { of.policy = SystemCRDFirst }, "7", false},
		"what is purged":   {func(of *subject) { of.tenant.Annotations = map[string]string{names.PurgeCRDs: "a/b"} }, "7", false},
		"the tenant's CRD": {func(*subject) {}, "8", false},
		"its deletion":     {func(*subject) {}, "", false},
	} {
		if same := subjectOf(tt.change).basis(tt.version) == was; same != tt.same {
			t.Errorf("%s: the same basis: %t", name, same)
		}
	}
}

func TestVersions(t *testing.T) {
	var v versions
	events := 0
	h := v.handler(func() { events++ })
	crdOf := func(version string) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", ResourceVersion: version}}
	}
	for i, step := range []struct {
		event func()
		want  string
	}{
		{func() {}, ""},
		{func() { h.Add(crdOf("1"), false) }, "1"},
		{func() { h.Update(crdOf("1"), crdOf("2")) }, "2"},
		{func() { h.Remove(crdOf("2"), false) }, ""},
	} {
		step.event()
		if got := v.of("widgets.example.com"); got != step.want || events != i {
			t.Errorf("step %d: version %q after %d events, want %q", i, got, events, step.want)
		}
	}
}
