// Package kinds describes the kinds of objects that the syncer syncs: a [Flow] declares which way the objects of a kind flow, by typed
// hooks, and a [Kind] is the same with the type erased, for the packages that sync objects of any kind.
package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Flow is one type of object and how it flows between a tenant and the super cluster: a [Down] or an [Up]. Its functions are
// pure. They get objects out of shared caches and change none of them, except for those documented to be copies; a new object
// shares no memory with one of theirs, for the client writes the answers of servers into it.
type Flow interface {
	// Erase returns the kind with the type of its objects erased.
	Erase() *Kind
}

// Whole returns empty objects of the kinds of which the super cluster's cache has to hold all objects, and not only those that carry
// the label of a tenant: those that flow up, and those whose objects have claims.
func Whole(flows []Flow) []client.Object {
	var whole []client.Object
	for _, flow := range flows {
		if k := flow.Erase(); k.Up != nil || k.Down.Claims != nil {
			whole = append(whole, k.Object)
		}
	}
	return whole
}

// Source is a cache of the super cluster.
type Source int

const (
	// Copies holds what carries the label of a tenant, and all objects of the kinds of [Whole].
	Copies Source = iota
	// Everything holds all objects of custom resources that flow up.
	Everything
	// TokenSecrets holds the metadata of the Secrets with tokens.
	TokenSecrets
)

// Kind is a [Flow] with the type of its objects erased. Either Down or Up is set.
type Kind struct {
	// Name is the kind's, such as ConfigMap; a custom resource's has its group.
	Name string
	// GVK is the kind in the version that is synced.
	GVK schema.GroupVersionKind
	// Resource is the kind's name in limits.
	Resource string
	// Source is the cache of the super cluster that holds the objects.
	Source Source
	// Object is an empty object, List an empty list. Nobody changes them.
	Object client.Object
	List   client.ObjectList
	Down   *Down[client.Object]
	Up     *Up[client.Object]

	// selector narrows what is synced; nil is everything.
	selector labels.Selector
	// metadataOnly: caches hold the metadata alone.
	metadataOnly bool
}

// Fresh returns a new empty object.
func (k *Kind) Fresh() client.Object {
	return k.Object.DeepCopyObject().(client.Object)
}

// Is reports whether an object is of the kind: by its type, which an object of many kinds completes by its apiVersion and kind.
func (k *Kind) Is(obj client.Object) bool {
	says := obj.GetObjectKind().GroupVersionKind()
	if reflect.TypeOf(obj) != reflect.TypeOf(k.Object) {
		return k.ByMetadata() && reflect.TypeOf(obj) == reflect.TypeOf(k.Watched()) && says == k.GVK
	}
	return says == k.GVK || says.Empty() && k.Object.GetObjectKind().GroupVersionKind().Empty()
}
