package alias

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestOldest(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	made := func(uid string, after time.Duration) tenancyv1alpha1.VirtualCluster {
		return tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(uid), CreationTimestamp: metav1.NewTime(start.Add(after)),
		}}
	}
	leaving := made("c", 0)
	leaving.DeletionTimestamp = &metav1.Time{Time: start.Add(time.Hour)}
	for name, tc := range map[string]struct {
		all  []tenancyv1alpha1.VirtualCluster
		want types.UID
	}{
		"none":             {nil, ""},
		"one":              {[]tenancyv1alpha1.VirtualCluster{made("a", 0)}, "a"},
		"by time":          {[]tenancyv1alpha1.VirtualCluster{made("a", time.Second), made("b", 0), made("c", time.Minute)}, "b"},
		"of one second":    {[]tenancyv1alpha1.VirtualCluster{made("b", 0), made("a", 0)}, "a"},
		"being deleted":    {[]tenancyv1alpha1.VirtualCluster{made("a", time.Second), leaving}, "c"},
		"created it again": {[]tenancyv1alpha1.VirtualCluster{made("a", time.Hour), made("b", time.Minute)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				got := types.UID("")
				if first := oldest(tc.all); first != nil {
					got = first.UID
				}
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				slices.Reverse(tc.all)
			}
		})
	}
}
