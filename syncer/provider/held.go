package provider

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
)

// held is what the tenants' caches hold of kinds that are not cached completely.
// controller-runtime's cache takes the same as options, but has a cache and a
// goroutine more for each of these kinds, in every tenant.
type held struct {
	scheme *runtime.Scheme
	kinds  map[schema.GroupVersionKind]cache.ByObject
	strip  toolscache.TransformFunc
}

// newHeld returns what caches hold. Of the options, it uses the label selector
// and the transform.
func newHeld(scheme *runtime.Scheme, narrow map[client.Object]cache.ByObject) held {
	objects := map[client.Object]cache.ByObject{
		// Only the tenant's events that were synced up are needed.
		&corev1.Event{}: {Label: labels.SelectorFromSet(labels.Set{names.FromSuper: "true"})},
		// Copies of shared CRDs are watched for changes only.
		&apiextensionsv1.CustomResourceDefinition{}: {Label: marked(names.SharedCRD), Transform: withoutTexts},
	}
	maps.Copy(objects, narrow)
	h := held{scheme, map[schema.GroupVersionKind]cache.ByObject{}, cache.TransformStripManagedFields()}
	for obj, options := range objects {
		h.kinds[h.kindOf(obj)] = options
	}
	return h
}

// marked selects the objects that have a label.
func marked(label string) labels.Selector {
	// Exists without values is always a valid requirement.
	exists, _ := labels.NewRequirement(label, selection.Exists, nil)
	return labels.NewSelector().Add(*exists)
}

// withoutTexts removes the metadata of an object that tenants can make large.
func withoutTexts(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		m.Labels, m.Annotations, m.ManagedFields, m.Finalizers, m.OwnerReferences = nil, nil, nil, nil, nil
	}
	return obj, nil
}

// kindOf returns the kind of an object; empty if the scheme does not have it.
func (h held) kindOf(obj runtime.Object) schema.GroupVersionKind {
	if says := obj.GetObjectKind().GroupVersionKind(); !says.Empty() {
		return says
	}
	gvk, err := apiutil.GVKForObject(obj, h.scheme)
	if err != nil {
		return schema.GroupVersionKind{} // of which nothing is narrowed
	}
	return gvk
}

// selector returns the selector of a kind; nil if the cache holds all objects.
func (h held) selector(example runtime.Object) labels.Selector {
	return h.kinds[h.kindOf(example)].Label
}

// transform reduces an object to what a cache holds of it.
func (h held) transform(obj any) (any, error) {
	if o, ok := obj.(runtime.Object); ok {
		if transform := h.kinds[h.kindOf(o)].Transform; transform != nil {
			return transform(obj)
		}
	}
	return h.strip(obj)
}

// narrow returns informers that list and watch the objects that are selected.
func (h held) narrow(next informer.NewInformer) informer.NewInformer {
	return func(
		source toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		if selector := h.selector(example); selector != nil {
			source = selecting(source, selector.String())
		}
		return next(source, example, resync, indexers)
	}
}

// selecting adds a label selector to the requests of a source.
func selecting(source toolscache.ListerWatcher, selector string) toolscache.ListerWatcher {
	all := toolscache.ToListerWatcherWithContext(source)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return all.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return all.WatchWithContext(ctx, options)
		},
	}
}
