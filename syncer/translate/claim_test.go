package translate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestWhatIsClaimedGoesAgain checks that a key of a patch is removed with the
// patch, and that the super cluster's own keys stay.
func TestWhatIsClaimedGoesAgain(t *testing.T) {
	patched := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{names.VCName: "blue", "app": "web", "pool": "fast"},
		Annotations: map[string]string{names.Cluster: "key", "note": "seen", names.Labels: "app"},
	}}
	Claim(patched)
	super := patched.DeepCopy()
	super.Labels["audit"], super.Annotations["audit"] = "yes", "yes"

	Merge(super, metav1.ObjectMeta{
		Labels:      map[string]string{names.VCName: "blue", "app": "web"},
		Annotations: map[string]string{names.Cluster: "key", names.Labels: "app"},
	})
	want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{names.VCName: "blue", "app": "web", "audit": "yes"},
		Annotations: map[string]string{names.Cluster: "key", names.Labels: "app", "audit": "yes"},
	}}
	if diff := cmp.Diff(want, super); diff != "" {
		t.Error(diff)
	}
}
