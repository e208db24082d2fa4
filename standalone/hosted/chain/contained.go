package chain

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// The storage of upstream decodes, selects and completes the objects of a watch
// in goroutines that do not recover from panics. This file recovers in the
// functions that they call: a panic is the error of one watch or object.
// docs/kubernetes-minors.md lists all goroutines of upstream that work for a
// tenant.

// logPanic logs a panic of which the caller gets no more than the message.
func logPanic(err error, message string) {
	if panicked, ok := errors.AsType[*views.PanicError](err); ok {
		klog.ErrorS(err, message, "stack", string(panicked.Stack))
	}
}

// containedCodec decodes stored objects. For custom resources, this includes
// the answers of a tenant's conversion webhooks.
type containedCodec struct {
	runtime.Codec

	resource schema.GroupResource
}

// Decode implements runtime.Decoder.
func (c containedCodec) Decode(
	value []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (_ runtime.Object, _ *schema.GroupVersionKind, err error) {
	defer views.Recovered(func(panicked error) {
		logPanic(panicked, "Panicked while decoding a stored object")
		err = panicked
	})
	object, kind, err := c.Codec.Decode(value, defaults, into)
	if _, explained := err.(apierrors.APIStatus); err != nil && !explained {
		err = fmt.Errorf("decode a stored object of %s: %w", c.resource, err)
	}
	return object, kind, err
}

// containedStorage selects the objects of watches. An object whose attributes
// cannot be determined is not selected.
type containedStorage struct{ storage.Interface }

// Watch implements storage.Interface.
func (s containedStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if inner := opts.Predicate.GetAttrs; inner != nil {
		opts.Predicate.GetAttrs = func(object runtime.Object) (_ labels.Set, _ fields.Set, err error) {
			defer views.Recovered(func(panicked error) {
				logPanic(panicked, "Panicked while selecting an object of a watch")
				err = panicked
			})
			return inner(object)
		}
	}
	return s.Interface.Watch(ctx, key, opts)
}

// containDecorator makes the function that completes the objects of a store
// recover. An object for which it panics stays as it is stored.
func containDecorator(store *registry.Store) {
	inner := store.Decorator
	store.Decorator = func(object runtime.Object) {
		defer views.Recovered(func(panicked error) { logPanic(panicked, "Panicked while completing an object") })
		inner(object)
	}
}
