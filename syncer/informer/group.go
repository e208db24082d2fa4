package informer

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Group creates informers that live as long as a context. controller-runtime's
// cache needs two goroutines to tell each of its informers when to stop,
// because an informer may stop alone or with the cache; informers of a group
// return from Run at once, which ends these goroutines. A cache with a group
// therefore cannot stop a single informer: an informer that is removed from it
// continues to watch until the group ends.
//
// The apiserver that a group watches is not trusted: objects that no conforming
// apiserver returns are dropped, and the total memory of the objects is
// bounded.
type Group struct {
	ctx     context.Context
	opts    GroupOptions
	budget  budget
	running sync.WaitGroup
	// stream feeds informers together; nil if each watches for itself.
	stream *stream
}

// GroupOptions configure a group.
type GroupOptions struct {
	// Memory is the maximum memory of the group's objects in bytes; 0 for no
	// limit.
	Memory int64
	// Exceeded is called once, when the first object exceeds the limit. Such
	// objects are dropped.
	Exceeded func(error)
	// Rejected is called with the kind of every dropped object, and the reason.
	Rejected func(kind, reason string)
	// Namespaced reports whether objects of the type of an example are
	// namespaced.
	Namespaced func(example runtime.Object) (bool, error)
	// Source may serve many kinds in one stream; nil if it does not.
	Source *Source
}

// NewGroup returns a group that lives as long as ctx.
func NewGroup(ctx context.Context, opts GroupOptions) *Group {
	g := &Group{ctx: ctx, opts: opts, budget: budget{most: opts.Memory, exceeded: opts.Exceeded}}
	if opts.Source != nil {
		g.stream = &stream{group: g, source: *opts.Source}
	}
	return g
}

// NewInformer is the signature of controller-runtime's option for informers.
type NewInformer = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// New returns an informer, like the function New.
func (g *Group) New(
	source cache.ListerWatcher, example runtime.Object, _ time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	i := newInformer(source, example, indexers)
	i.source = newSource(source, i)
	i.group = g
	// The cache has already mapped the kind to a resource, so this does not
	// fail.
	namespaced, err := g.opts.Namespaced(example)
	i.check = func(obj any) string {
		if err != nil {
			return ReasonKind
		}
		return checker{example, namespaced}.check(obj)
	}
	return i
}

// streams reports whether objects of the type of an example come in the group's
// stream, as far as is known.
func (g *Group) streams(example runtime.Object) bool {
	return g.stream != nil && g.stream.serves(example)
}

// Wait waits until the running informers have stopped.
func (g *Group) Wait() { g.running.Wait() }
