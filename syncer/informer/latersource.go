package informer

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// laterSource lists and watches for an informer whose stream has turned out not
// to be served.
type laterSource struct {
	cache *GroupCache
	made  atomic.Pointer[toolscache.ListerWatcherWithContext]
}

var _ toolscache.ListerWatcherWithContext = (*laterSource)(nil)

func (s *laterSource) set(source toolscache.ListerWatcher) {
	made := toolscache.ToListerWatcherWithContext(source)
	s.made.Store(&made)
}

// source returns the source that controller-runtime's cache makes.
func (s *laterSource) source(ctx context.Context) (toolscache.ListerWatcherWithContext, error) {
	if _, err := s.cache.whole(ctx); err != nil {
		return nil, err
	}
	return *s.made.Load(), nil
}

// List lists without a context.
func (s *laterSource) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch watches without a context.
func (s *laterSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// ListWithContext lists.
func (s *laterSource) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	source, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	return source.ListWithContext(ctx, options)
}

// WatchWithContext watches.
func (s *laterSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	source, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	return source.WatchWithContext(ctx, options)
}
