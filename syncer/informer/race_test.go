package informer

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// TestHandlersComeAndGoDuringEvents runs with the race detector, and checks
// that every remaining handler knows all objects in the end.
func TestHandlersComeAndGoDuringEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
		i := over(source)
		go i.RunWithContext(ctx)
		var wait sync.WaitGroup
		wait.Go(func() {
			for n := range 2000 {
				name := fmt.Sprintf("object-%d", n%7)
				switch n / 7 % 3 {
				case 0:
					source.Add(configMap(name, fmt.Sprint(n)))
				case 1:
					source.Modify(configMap(name, fmt.Sprint(n)))
				case 2:
					source.Delete(configMap(name, fmt.Sprint(n)))
				}
			}
		})
		journals := make([]*journal, 50)
		for n := range journals {
			journals[n] = newJournal()
			wait.Go(func() {
				leaves := join(t, i, newJournal())
				join(t, i, journals[n])
				if err := i.RemoveEventHandler(leaves); err != nil {
					t.Error(err)
				}
				_, _ = i.GetIndexer().ByIndex(cache.NamespaceIndex, "shop-o")
				_, _ = i.HasSynced(), i.LastSyncResourceVersion()
			})
		}
		wait.Wait()
		synctest.Wait()
		for n, j := range journals {
			if !maps.Equal(j.known(), stored(i)) {
				t.Errorf("handler %d knows %v, want %v", n, j.known(), stored(i))
			}
		}
	})
}
