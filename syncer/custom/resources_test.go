package custom

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

// TestWhatIsWatchedDoesNotDependOnTheStatus: two tenants whose kinds differ in
// that share the watch.
func TestWhatIsWatchedDoesNotDependOnTheStatus(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	down := kinds.CustomResource{GVK: gvk, Direction: tenancyv1alpha1.SyncDown, Namespaced: true}
	status, up, other := down, down, down
	status.Status = true
	up.Direction = tenancyv1alpha1.SyncUp
	other.GVK.Version = "v2"
	if keyOf(down) != keyOf(status) || keyOf(down) == keyOf(up) || keyOf(down) == keyOf(other) {
		t.Errorf("watched are %v, %v, %v, %v", keyOf(down), keyOf(status), keyOf(up), keyOf(other))
	}
}

// watches records the watches in the super cluster.
type watches struct {
	opened, closed int
	err            error
}

func (w *watches) WatchSuper(context.Context, *kinds.Kind) (toolscache.DoneChecker, error) {
	w.opened++
	return synced{}, w.err
}

func (w *watches) UnwatchSuper(context.Context, *kinds.Kind) error {
	w.closed++
	return nil
}

func (w *watches) WatchStanding(ctx context.Context, k *kinds.Kind) (toolscache.DoneChecker, error) {
	return w.WatchSuper(ctx, k)
}

func (w *watches) UnwatchStanding(ctx context.Context, k *kinds.Kind) error {
	return w.UnwatchSuper(ctx, k)
}

// synced is the checker of a watch whose objects are known.
type synced struct{}

func (synced) Name() string { return "synced" }

func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (s synced) HasSyncedChecker() toolscache.DoneChecker { return s }
func (synced) HasSynced() bool                            { return true }

func build(kinds.CustomResource) kinds.Flow { return kindstest.Plain() }

// TestTenantsShareAWatch: it is opened for the first tenant, and closed after
// the last.
func TestTenantsShareAWatch(t *testing.T) {
	w := &watches{}
	c := NewResources(nil, w, Options{Build: build})
	down := kinds.CustomResource{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Direction: tenancyv1alpha1.SyncDown}
	withStatus := down
	withStatus.Status = true
	for _, r := range []kinds.CustomResource{down, withStatus} {
		if _, err := c.acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if w.opened != 1 {
		t.Errorf("%d watches were opened for two tenants", w.opened)
	}
	if err := c.release(t.Context(), withStatus); err != nil || w.closed > 0 {
		t.Errorf("the watch is closed although a tenant needs it: %v", err)
	}
	if err := c.release(t.Context(), down); err != nil || w.closed != 1 {
		t.Errorf("%d watches were closed: %v", w.closed, err)
	}
}

// TestAWatchThatFailsIsClosed: the informer would try for ever, and the next
// tenant would wait for it.
func TestAWatchThatFailsIsClosed(t *testing.T) {
	w := &watches{err: errors.New("no such kind")}
	c := NewResources(nil, w, Options{Build: build})
	for want := 1; want <= 2; want++ {
		if _, err := c.acquire(t.Context(), kinds.CustomResource{}); !errors.Is(err, w.err) || w.opened != want || w.closed != want {
			t.Errorf("%d opened, %d closed: %v", w.opened, w.closed, err)
		}
	}
}
