package informer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// TestSameAsStock runs an informer and client-go's with the same changes,
// including watches that break, and compares their indexes and the calls of
// their handlers.
func TestSameAsStock(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource) {
				changes := &changes{source: source, random: rand.New(rand.NewPCG(seed, 0)), values: map[string]int{}}
				changes.make(20, 1)
				lean, stock := follow(ctx, t, over(source)), follow(ctx, t, stockOver(source))
				for range 5 {
					changes.make(50, 1)
					compare(t, lean, stock)
					changes.make(10, 0)
					source.ResetWatch()
					time.Sleep(10 * time.Minute)
					compare(t, lean, stock)
				}
			})
		})
	}
}

// changes are random changes.
type changes struct {
	source *cachetesting.FakeControllerSource
	random *rand.Rand
	values map[string]int
	last   int
}

// make makes that many changes, of which watches see a part.
func (c *changes) make(n int, seen float64) {
	for range n {
		name := fmt.Sprintf("object-%d", c.random.IntN(10))
		_, exists := c.values[name]
		event := watch.Added
		if exists {
			event = watch.Modified
			if c.random.IntN(3) == 0 {
				event = watch.Deleted
			}
		}
		c.last++
		if c.values[name] = c.last; event == watch.Deleted {
			delete(c.values, name)
		}
		c.source.Change(watch.Event{Type: event, Object: configMap(name, fmt.Sprint(c.last))}, seen)
	}
}

// followed is an informer with handlers that were added before and while it
// ran.
type followed struct {
	cache.SharedIndexInformer
	journals []*journal
}

func follow(ctx context.Context, t *testing.T, i cache.SharedIndexInformer) *followed {
	t.Helper()
	f := &followed{i, []*journal{newJournal()}}
	join(t, i, f.journals[0])
	go i.RunWithContext(ctx)
	synctest.Wait()
	return f
}

// compare compares the indexes of two informers and the calls of their
// handlers, and adds a handler to each.
func compare(t *testing.T, lean, stock *followed) {
	t.Helper()
	synctest.Wait()
	if got, want := stored(lean), stored(stock); !maps.Equal(got, want) {
		t.Errorf("it holds %v, client-go's %v", got, want)
	}
	for n := range lean.journals {
		if diff := cmp.Diff(stock.journals[n].sorted(), lean.journals[n].sorted()); diff != "" {
			t.Fatalf("calls of handler %d differ from client-go's (-):\n%s", n, diff)
		}
		if state := lean.journals[n].known(); !maps.Equal(state, stored(lean)) {
			t.Errorf("handler %d knows %v, want %v", n, state, stored(lean))
		}
	}
	for _, f := range []*followed{lean, stock} {
		f.journals = append(f.journals, newJournal())
		join(t, f, f.journals[len(f.journals)-1])
	}
}
