package controllers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// collections is a metadata client for upstream's deleter of namespaces, which
// deletes the objects of each kind, one kind after the other, and then lists those that
// remain. Most kinds have no objects in most namespaces. This client lists them once,
// and deletes nothing.
type collections struct{ metadata.Interface }

// emptyKey is the key of contexts for the kind that was found empty last, of type
// *schema.GroupVersionResource.
type emptyKey struct{}

// withEmpty returns the context for one attempt to delete one namespace.
func withEmpty(ctx context.Context) context.Context {
	return context.WithValue(ctx, emptyKey{}, &schema.GroupVersionResource{})
}

// Resource returns the collections of a kind.
func (c collections) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return collectionGetter{c.Interface.Resource(gvr), gvr}
}

type collectionGetter struct {
	metadata.Getter

	gvr schema.GroupVersionResource
}

// Namespace returns the collection in a namespace.
func (g collectionGetter) Namespace(namespace string) metadata.ResourceInterface {
	return collection{g.Getter.Namespace(namespace), g.gvr}
}

type collection struct {
	metadata.ResourceInterface

	gvr schema.GroupVersionResource
}

// DeleteCollection deletes the objects, unless there are none. A collection that cannot
// be listed is deleted.
func (c collection) DeleteCollection(ctx context.Context, options metav1.DeleteOptions, list metav1.ListOptions) error {
	first, err := c.ResourceInterface.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(first.Items) > 0 || first.Continue != "" {
		return c.ResourceInterface.DeleteCollection(ctx, options, list)
	}
	if empty, ok := ctx.Value(emptyKey{}).(*schema.GroupVersionResource); ok {
		*empty = c.gvr
	}
	return nil
}

// List lists the objects, unless DeleteCollection has just found that there are none.
func (c collection) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if empty, ok := ctx.Value(emptyKey{}).(*schema.GroupVersionResource); ok && *empty == c.gvr {
		*empty = schema.GroupVersionResource{}
		return &metav1.PartialObjectMetadataList{}, nil
	}
	return c.ResourceInterface.List(ctx, options)
}
