package informer

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Group makes informers that live as long as a context. controller-runtime's cache spends two goroutines on telling each of its
// informers when to end, for the cache ends as a whole and can let one of them go; a group's informers return them as soon as they
// run. So a cache of a group lets no informer go: one that is removed from it watches on, unseen, until all end.
type Group struct {
	ctx     context.Context
	running sync.WaitGroup
}

// NewGroup makes a group that lives as long as ctx.
func NewGroup(ctx context.Context) *Group { return &Group{ctx: ctx} }

// New makes an informer, as the function New does.
func (g *Group) New(
	source cache.ListerWatcher, example runtime.Object, _ time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	i := newInformer(source, example, indexers)
	i.group = g
	return i
}

// Wait waits until the informers that run have ended.
func (g *Group) Wait() { g.running.Wait() }
