// Package kinds describes the kinds of objects that the syncer syncs: a [Flow]
// declares the direction of a kind by typed hooks, and a [Kind] is the same
// without the type, for the packages that sync objects of any kind.
package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Flow is a type of objects and how it is synced between a tenant and the super
// cluster: a [Down] or an [Up]. Its functions are pure. They get objects of
// shared caches and must not change them, except those documented to be deep
// copies; a new object must not share memory with an argument, because the
// client decodes servers' answers into it.
type Flow interface {
	// Erase returns the kind without the type of its objects.
	Erase() *Kind
}

// Whole returns empty objects of the kinds of which the super cluster's cache
// has to hold all objects, and not only those with the label of a tenant: kinds
// that are synced up, and kinds with claims.
func Whole(flows []Flow) []client.Object {
	var whole []client.Object
	for _, flow := range flows {
		if k := flow.Erase(); k.Up != nil || k.Down.Claims != nil {
			whole = append(whole, k.Object)
		}
	}
	return whole
}

// Source identifies a cache of the super cluster.
type Source int

const (
	// Copies holds the objects with the label of a tenant, and all objects of
	// the kinds of [Whole].
	Copies Source = iota
	// Everything holds all objects of custom resources that are synced up.
	Everything
	// Standing holds all objects of the standing resources.
	Standing
	// TokenSecrets holds the metadata of the Secrets with tokens.
	TokenSecrets
)

// Kind is a [Flow] without the type of its objects. Either Down or Up is set.
type Kind struct {
	// Name is the name of the kind, such as ConfigMap; that of a custom
	// resource includes its group.
	Name string
	// GVK is the kind in the version that is synced.
	GVK schema.GroupVersionKind
	// Resource is the name of the kind in limits.
	Resource string
	// Source is the cache of the super cluster for the objects.
	Source Source
	// Object is an empty object, List an empty list. They must not be changed.
	Object client.Object
	List   client.ObjectList
	// Summary, ClusterScoped and Optional are those of the declaration.
	Summary                 string
	ClusterScoped, Optional bool

	Down *Down[client.Object]
	Up   *Up[client.Object]

	// selector selects the objects to sync; nil selects all.
	selector labels.Selector
	// metadataOnly is set if caches only hold metadata.
	metadataOnly bool
}

// Fresh returns a new empty object.
func (k *Kind) Fresh() client.Object {
	return k.Object.DeepCopyObject().(client.Object)
}

// Is reports whether an object is of the kind: by its type and, if that is used
// for several kinds, by its apiVersion and kind.
func (k *Kind) Is(obj client.Object) bool {
	says := obj.GetObjectKind().GroupVersionKind()
	if reflect.TypeOf(obj) != reflect.TypeOf(k.Object) {
		return k.ByMetadata() && reflect.TypeOf(obj) == reflect.TypeOf(k.Watched()) && says == k.GVK
	}
	return says == k.GVK || says.Empty() && k.Object.GetObjectKind().GroupVersionKind().Empty()
}
