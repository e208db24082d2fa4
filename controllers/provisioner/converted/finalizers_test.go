package converted

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKept: controllers of the super cluster finish their work, for as long as
// they need, and a tenant's finalizer that looks like theirs holds nothing longer.
func TestKept(t *testing.T) {
	deleted := time.Now()
	object := &metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: deleted}, Finalizers: []string{
		"example.com/mine", "kubernetes.io/pvc-protection", "service.kubernetes.io/load-balancer-cleanup", "batch.kubernetes.io/job-tracking",
		"mykubernetes.io/a", "mine", "foregroundDeletion", "kubernetes.io.example.com/a",
	}}
	want := []string{
		"kubernetes.io/pvc-protection", "service.kubernetes.io/load-balancer-cleanup", "batch.kubernetes.io/job-tracking", "foregroundDeletion",
	}
	if got := kept(object, deleted.Add(time.Second)); !slices.Equal(got, want) {
		t.Errorf("kept at first: %q, want %q", got, want)
	}
	if got := kept(object, deleted.Add(patience+time.Second)); got == nil || len(got) > 0 {
		t.Errorf("kept after %s: %q", patience, got)
	}
}
