package converted

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Union is a cache that has, of some kinds, also the objects of converted
// tenants. One label selector cannot select them together with the copies of
// other tenants.
type Union struct {
	// Cache is that of the super cluster.
	cache.Cache

	objects cache.Cache
	kinds   sets.Set[schema.GroupKind]
	scheme  *runtime.Scheme
}

// NewUnion returns the union of the super cluster's cache and that of
// [Objects], for the objects of these kinds.
func NewUnion(super, objects cache.Cache, scheme *runtime.Scheme, kinds ...schema.GroupKind) *Union {
	return &Union{Cache: super, objects: objects, scheme: scheme, kinds: sets.New(kinds...)}
}

// has reports whether an object or a list is of the kinds that converted tenants
// have objects of.
func (u *Union) has(obj runtime.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, u.scheme)
	if err != nil {
		return false
	}
	kind := gvk.GroupKind()
	if meta.IsListType(obj) {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	return u.kinds.Has(kind)
}

// Get implements client.Reader.
func (u *Union) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := u.Cache.Get(ctx, key, obj, opts...)
	if apierrors.IsNotFound(err) && u.has(obj) {
		return u.objects.Get(ctx, key, obj, opts...)
	}
	return err
}

// List implements client.Reader.
func (u *Union) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := u.Cache.List(ctx, list, opts...); err != nil || !u.has(list) {
		return err
	}
	more := list.DeepCopyObject().(client.ObjectList)
	if err := u.objects.List(ctx, more, opts...); err != nil {
		return err
	}
	copies, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	others, err := meta.ExtractList(more)
	if err != nil {
		return err
	}
	return meta.SetList(list, append(copies, others...))
}

// GetInformer implements cache.Informers.
func (u *Union) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	copies, err := u.Cache.GetInformer(ctx, obj, opts...)
	if err != nil || !u.has(obj) {
		return copies, err
	}
	objects, err := u.objects.GetInformer(ctx, obj, opts...)
	return both{copies, objects}, err
}

// GetInformerForKind implements cache.Informers.
func (u *Union) GetInformerForKind(
	ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	copies, err := u.Cache.GetInformerForKind(ctx, gvk, opts...)
	if err != nil || !u.kinds.Has(gvk.GroupKind()) {
		return copies, err
	}
	objects, err := u.objects.GetInformerForKind(ctx, gvk, opts...)
	return both{copies, objects}, err
}

// IndexField implements client.FieldIndexer.
func (u *Union) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	if err := u.Cache.IndexField(ctx, obj, field, extract); err != nil || !u.has(obj) {
		return err
	}
	return u.objects.IndexField(ctx, obj, field, extract)
}
