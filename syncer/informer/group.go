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
//
// The apiserver that a group watches is not trusted: objects that no honest apiserver returns are dropped, and all objects
// together take a bounded amount of memory.
type Group struct {
	ctx     context.Context
	opts    GroupOptions
	budget  budget
	running sync.WaitGroup
}

// GroupOptions are what a group is made of.
type GroupOptions struct {
	// Memory is how many bytes the objects of the group may take; 0 is any number.
	Memory int64
	// Exceeded is called once when an object does not fit. Such objects are dropped.
	Exceeded func(error)
	// Rejected is called with the kind of every object that was dropped, and the reason.
	Rejected func(kind, reason string)
	// Namespaced reports whether objects of the type of an example are in namespaces.
	Namespaced func(example runtime.Object) (bool, error)
}

// NewGroup makes a group that lives as long as ctx.
func NewGroup(ctx context.Context, opts GroupOptions) *Group {
	return &Group{ctx: ctx, opts: opts, budget: budget{most: opts.Memory, exceeded: opts.Exceeded}}
}

// New makes an informer, as the function New does.
func (g *Group) New(
	source cache.ListerWatcher, example runtime.Object, _ time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	i := newInformer(source, example, indexers)
	i.source = newSource(source, i)
	i.group = g
	// The cache has mapped the kind to a resource in the same way, so this does not fail.
	namespaced, err := g.opts.Namespaced(example)
	i.check = func(obj any) string {
		if err != nil {
			return ReasonKind
		}
		return checker{example, namespaced}.check(obj)
	}
	return i
}

// Wait waits until the informers that run have ended.
func (g *Group) Wait() { g.running.Wait() }
