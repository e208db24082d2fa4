package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHandlersAreToldWhatIsListedAndWatched(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		source.Add(configMap("a", "1"))
		i, early := over(source), newJournal()
		registration := join(t, i, early)
		synctest.Wait()
		expect(t, early.taken())
		if i.HasSynced() || registration.HasSynced() {
			t.Error("it has synced before it runs")
		}
		go i.RunWithContext(ctx)
		<-registration.HasSyncedChecker().Done()
		expect(t, early.taken(), "initial add a=1 with managed fields")

		source.Add(configMap("b", "1"))
		source.Modify(configMap("a", "2"))
		source.Delete(configMap("b", "2"))
		synctest.Wait()
		expect(t, early.taken(), "add b=1 with managed fields",
			"update a=1 with managed fields to a=2 with managed fields", "delete b=2 with managed fields")

		late := newJournal()
		if registration := join(t, i, late); !registration.HasSynced() {
			t.Error("a handler of all objects has not synced")
		}
		expect(t, late.taken(), "initial add a=2 with managed fields")
		if got := i.LastSyncResourceVersion(); got != "4" {
			t.Errorf("at resource version %s, want 4", got)
		}
	})
}

func TestWhatNobodySawIsToldAfterTheNextList(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		for _, name := range []string{"gone", "kept", "changed"} {
			source.Add(configMap(name, "1"))
		}
		i, handler := over(source), newJournal()
		if err := i.SetTransform(stripped); err != nil {
			t.Fatal(err)
		}
		join(t, i, handler)
		go i.RunWithContext(ctx)
		synctest.Wait()
		handler.taken()

		source.DeleteDropWatch(configMap("gone", "2"))
		source.ModifyDropWatch(configMap("changed", "2"))
		source.AddDropWatch(configMap("added", "2"))
		source.ResetWatch()
		time.Sleep(time.Minute)
		synctest.Wait()
		got := handler.taken()
		if len(got) > 0 {
			expect(t, got[:1], "missed delete shop-g/gone gone=1")
		}
		slices.Sort(got)
		expect(t, got, "add added=2", "missed delete shop-g/gone gone=1", "update changed=1 to changed=2", "update kept=1 to kept=1")
	})
}

// TestUnknownObjectsAreNotDeleted checks that an apiserver cannot cause work by
// claiming deletions.
func TestUnknownObjectsAreNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		i, handler := over(source), newJournal()
		join(t, i, handler)
		go i.RunWithContext(ctx)
		synctest.Wait()
		for n := range 10 {
			source.Broadcaster.Action(watch.Deleted, configMap(fmt.Sprint("never-", n), "1"))
		}
		source.Add(configMap("a", "1"))
		synctest.Wait()
		expect(t, handler.taken(), "add a=1 with managed fields")
	})
}

func TestHandlersLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		i, stays, leaves := over(source), newJournal(), newJournal()
		join(t, i, stays)
		registration := join(t, i, leaves)
		go i.RunWithContext(ctx)
		synctest.Wait()
		for range 2 {
			if err := i.RemoveEventHandler(registration); err != nil {
				t.Error(err)
			}
		}
		source.Add(configMap("a", "1"))
		synctest.Wait()
		expect(t, leaves.taken())
		expect(t, stays.taken(), "add a=1 with managed fields")
		if err := over(source).RemoveEventHandler(registration); err == nil {
			t.Error("another informer's handler was removed")
		}
	})
}

func TestAllIsTransformed(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		source.Add(configMap("listed", "1"))
		i, handler := over(source), newJournal()
		if err := i.SetTransform(stripped); err != nil {
			t.Fatal(err)
		}
		join(t, i, handler)
		go i.RunWithContext(ctx)
		synctest.Wait()
		source.Add(configMap("added", "1"))
		source.Modify(configMap("added", "2"))
		source.Delete(configMap("added", "3"))
		synctest.Wait()
		expect(t, handler.taken(), "initial add listed=1", "add added=1", "update added=1 to added=2", "delete added=3")
		if err := i.SetTransform(nil); err == nil {
			t.Error("the transform could be changed while it runs")
		}
	})
}

func TestWhatCannotBeTransformedIsNotKept(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		i, handler := over(source), newJournal()
		join(t, i, handler)
		err := i.SetTransform(func(obj any) (any, error) {
			if obj.(*corev1.ConfigMap).Data["value"] == "bad" {
				return nil, errors.New("bad")
			}
			return obj, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		go i.RunWithContext(ctx)
		synctest.Wait()
		source.Add(configMap("a", "bad"))
		source.Add(configMap("b", "good"))
		synctest.Wait()
		if got, want := stored(i), map[string]string{"b": "good"}; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestIndexesFindObjects(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		source.Add(configMap("a1", "x"))
		source.Add(configMap("a2", "y"))
		source.Add(configMap("b", "x"))
		i := over(source)
		byValue := func(obj any) ([]string, error) { return []string{obj.(*corev1.ConfigMap).Data["value"]}, nil }
		if err := i.AddIndexers(cache.Indexers{"value": byValue}); err != nil {
			t.Fatal(err)
		}
		go i.RunWithContext(ctx)
		synctest.Wait()
		if err := i.AddIndexers(cache.Indexers{"late": byValue}); err != nil {
			t.Fatal(err)
		}
		for index, value := range map[string]string{cache.NamespaceIndex: "shop-a", "value": "x", "late": "x"} {
			if found, err := i.GetIndexer().ByIndex(index, value); err != nil || len(found) != 2 {
				t.Errorf("index %s has %d objects of %s (%v), want 2", index, len(found), value, err)
			}
		}
	})
}

// breaking is a source whose lists fail while it is broken.
type breaking struct {
	*cachetesting.FakeControllerSource

	broken atomic.Bool
}

func (b *breaking) List(options metav1.ListOptions) (runtime.Object, error) {
	if b.broken.Load() {
		return nil, errors.New("not now")
	}
	return b.FakeControllerSource.List(options)
}

func TestListsThatFailAreTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		source.Add(configMap("a", "1"))
		broken := &breaking{FakeControllerSource: source}
		broken.broken.Store(true)
		i, handler := over(broken), newJournal()
		registration := join(t, i, handler)
		go i.RunWithContext(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if registration.HasSynced() {
			t.Error("it has synced without a list")
		}
		broken.broken.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !registration.HasSynced() {
			t.Error("it has not synced")
		}
		expect(t, handler.taken(), "initial add a=1 with managed fields")
	})
}

func TestItEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		i := over(source)
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			i.Run(ctx.Done())
		}()
		synctest.Wait()
		cancel()
		<-ended
		if !i.IsStopped() {
			t.Error("it does not know that it has stopped")
		}
		if _, err := i.AddEventHandler(newJournal()); err == nil {
			t.Error("a handler could join one that has stopped")
		}
		if err := i.AddIndexers(cache.Indexers{}); err == nil {
			t.Error("an index could be added to one that has stopped")
		}
		i.RunWithContext(t.Context()) // returns: an informer runs once
	})
}

func TestAGroupOutlivesWhatItsInformersRunWith(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		ctx, cancel := context.WithCancel(ctx)
		group, handler := NewGroup(ctx, inNamespaces()), newJournal()
		i := group.New(source, &corev1.ConfigMap{}, 0, nil)
		join(t, i, handler)
		stopped := make(chan struct{})
		i.Run(stopped) // returns
		close(stopped)
		synctest.Wait()
		source.Add(identified(configMap("a", "1")))
		synctest.Wait()
		expect(t, handler.taken(), "add a=1 with managed fields")
		cancel()
		group.Wait()
		if !i.IsStopped() {
			t.Error("it has not ended with its group")
		}
	})
}
