package caches

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/lastknown"
)

// Handler is an event handler made of functions, each of which may be nil.
type Handler struct {
	Add    func(obj client.Object, initial bool)
	Update func(was, now client.Object)
	Remove func(obj client.Object, missed bool)
}

var _ toolscache.ResourceEventHandler = Handler{}

// OnAdd handles a new object, or one of the first list.
func (h Handler) OnAdd(obj any, initial bool) {
	if o, ok := obj.(client.Object); ok && h.Add != nil {
		h.Add(o, initial)
	}
}

// OnUpdate handles a change of an object.
func (h Handler) OnUpdate(was, now any) {
	o, okWas := was.(client.Object)
	n, okNow := now.(client.Object)
	if okWas && okNow && h.Update != nil {
		h.Update(o, n)
	}
}

// OnDelete handles a deletion, with the last known state of the object. The
// deletion was missed if the object was only found missing.
func (h Handler) OnDelete(obj any) {
	_, missed := obj.(toolscache.DeletedFinalStateUnknown)
	if o, ok := lastknown.Of[client.Object](obj); ok && h.Remove != nil {
		h.Remove(o, missed)
	}
}
