package converted

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestGroupsOf: no label on a CRD gives a tenant the group of another, or of the
// platform.
func TestGroupsOf(t *testing.T) {
	const red, blue = "team-1a2b3c-red", "team-1a2b3c-blue"
	own := names.ConvertedGroup(red) + "example.com"
	var crds []metav1.PartialObjectMetadata
	for _, name := range []string{
		"widgets." + own, "gadgets." + own, "widgets." + names.ConvertedGroup(blue) + "example.com",
		"virtualclusters.tenancy.x-k8s.io", "widgets.example." + own, "widgets",
	} {
		crds = append(crds, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if got := groupsOf(crds, red); !slices.Equal(got, []string{own}) {
		t.Errorf("got %q", got)
	}
}
