package pending

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

func TestBlocks(t *testing.T) {
	counts := map[string]int{}
	b := NewBlocks(func(kind string, by int) { counts[kind] += by })
	began, later := time.Unix(100, 0), time.Unix(107, 0)
	put := func(on string, now time.Time, want Block) {
		t.Helper()
		if diff := cmp.Diff(want, b.Put("Pod", kindstest.WebKey(), on, now)); diff != "" {
			t.Errorf("blocked (-want +got):\n%s", diff)
		}
	}
	put("ServiceAccount web", began, Block{On: "ServiceAccount web", Since: began})
	put("ServiceAccount web", later, Block{On: "ServiceAccount web", Since: began})
	b.Note("Pod", kindstest.WebKey(), Block{On: "ServiceAccount web", Since: began, Told: true})
	put("ServiceAccount web", later, Block{On: "ServiceAccount web", Since: began, Told: true})
	// The tenant has not been told of this one, which the pod has waited for since it began to wait.
	put("PersistentVolumeClaim data", later, Block{On: "PersistentVolumeClaim data", Since: began})
	if counts["Pod"] != 1 {
		t.Errorf("%d pods are blocked, want 1", counts["Pod"])
	}
	b.Clear("Pod", kindstest.WebKey())
	put("ServiceAccount web", later, Block{On: "ServiceAccount web", Since: later})
	b.End()
	if counts["Pod"] != 0 {
		t.Errorf("%d pods of a tenant that is gone are blocked", counts["Pod"])
	}
}

func TestIsBlocked(t *testing.T) {
	err := fmt.Errorf("ensure the copy: %w", &BlockedError{On: "ServiceAccount web"})
	if !IsBlocked(err) || IsBlocked(nil) || IsBlocked(errors.New("no answer")) {
		t.Error("only a BlockedError is blocked")
	}
	if want := "ensure the copy: blocked on ServiceAccount web, which does not exist or is not synced yet"; err.Error() != want {
		t.Errorf("the text is %q, want %q", err, want)
	}
}
