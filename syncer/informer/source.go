package informer

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// errNoList reports that an apiserver answered with an object that is not the
// list. client-go then leaves the list empty, as if all objects had been
// deleted.
var errNoList = errors.New("the apiserver's answer is not a list of the kind")

// source lists and watches an untrusted apiserver.
type source struct {
	cache.ListerWatcherWithContext

	plain    any // the original source
	informer *Informer
}

func newSource(of cache.ListerWatcher, i *Informer) *source {
	return &source{cache.ToListerWatcherWithContext(of), of, i}
}

// IsWatchListSemanticsUnSupported reports whether the original source does not
// support lists by watching.
func (s *source) IsWatchListSemanticsUnSupported() bool {
	behind, ok := s.plain.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && behind.IsWatchListSemanticsUnSupported()
}

// List lists without a context.
func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch watches without a context.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// ListWithContext lists, and fails if the answer is not a list of the kind.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		s.informer.forgetCollected()
	}
	list, err := s.ListerWatcherWithContext.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	if !s.isList(list) {
		s.informer.reject(ReasonKind)
		return nil, errNoList
	}
	return list, nil
}

// isList reports whether an answer is a list of the kind: every list has a
// resource version, and an untyped list states its kind. A list of metadata
// does not state the kind.
func (s *source) isList(list runtime.Object) bool {
	listMeta, err := meta.ListAccessor(list)
	if err != nil || !isIdentity(listMeta.GetResourceVersion()) {
		return false
	}
	if _, partial := list.(*metav1.PartialObjectMetadataList); partial {
		return true
	}
	want := s.informer.example.GetObjectKind().GroupVersionKind()
	return want.Empty() || list.GetObjectKind().GroupVersionKind() == want.GroupVersion().WithKind(want.Kind+"List")
}

// WatchWithContext watches. A watch that begins with a list discards an earlier
// one.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		s.informer.forgetCollected()
	}
	return s.ListerWatcherWithContext.WatchWithContext(ctx, options)
}

// quiet is a log sink that removes events, which may be large, from client-go's
// messages about unusable events.
type quiet struct {
	logr.LogSink

	event func()
}

// Error logs a message without the apiserver's data.
func (q quiet) Error(err error, message string, values ...any) {
	kept := make([]any, 0, len(values))
	for i := 0; i+1 < len(values); i += 2 {
		switch values[i] {
		case "event", "object":
			q.event()
		case "actualType", "actualGVK":
			q.event()
			kept = append(kept, values[i], values[i+1])
		default:
			kept = append(kept, values[i], values[i+1])
		}
	}
	q.LogSink.Error(err, message, kept...)
}

// WithValues implements logr.LogSink.
func (q quiet) WithValues(values ...any) logr.LogSink {
	return quiet{q.LogSink.WithValues(values...), q.event}
}

// WithName implements logr.LogSink.
func (q quiet) WithName(name string) logr.LogSink { return quiet{q.LogSink.WithName(name), q.event} }
