package stream

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// watched is one kind of a stream, and the receiver of its changes.
type watched struct {
	*stream

	number       int
	kind         watchstream.Kind
	stored       views.StoredKind
	subscription *feed.Subscription
	// changed reports whether there are changes to receive.
	changed atomic.Bool
	// listing is set during a list.
	listing bool
	// selected are the objects that were sent of a kind with a selector; nil
	// for others.
	selected map[string]struct{}
}

var _ feed.Receiver = (*watched)(nil)

// wake is called by the feed, for which it must not block.
func (w *watched) wake() {
	w.changed.Store(true)
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Names implements feed.Receiver. It is called when a list begins. The client
// knows which objects it has, and drops those that the list does not name.
func (w *watched) Names() []string {
	w.listing = true
	clear(w.selected)
	w.add(watchstream.Frame{Op: watchstream.Begin, Kind: w.number})
	return nil
}

// Listed implements feed.Receiver.
func (w *watched) Listed(revision int64) {
	w.listing = false
	w.add(watchstream.Frame{Op: watchstream.Listed, Kind: w.number, Revision: revision})
}

// Receive implements feed.Receiver.
func (w *watched) Receive(change feed.Change) {
	if w.ctx.Err() != nil {
		return
	}
	if change.Deleted > 0 {
		w.gone(change.Name, change.Deleted)
	}
	if change.Value == nil {
		w.gone(change.Name, change.Revision)
		return
	}
	// Selectors are applied to contents, so names do not suffice.
	if w.listing && change.Revision <= w.kind.Since && w.selected == nil {
		w.add(watchstream.Frame{Op: watchstream.Same, Kind: w.number, Revision: change.Revision, Name: change.Name})
		return
	}
	w.put(change)
}

// put sends the state of an object, or that it is not selected any more.
func (w *watched) put(change feed.Change) {
	object, err := w.stored.Decode(change.Name, change.Value, change.Revision)
	if err != nil {
		// Without the object, the client would take it for deleted.
		w.cancel(err)
		return
	}
	if w.selected != nil && !w.selects(object) {
		w.unselect(change.Name, change.Revision, nil)
		return
	}
	if data := w.encode(object); data != nil {
		if w.selected != nil {
			w.selected[change.Name] = struct{}{}
		}
		w.add(watchstream.Frame{Op: watchstream.Put, Kind: w.number, Revision: change.Revision, Name: change.Name, Object: data})
	}
}

// gone sends that an object was deleted, with its last state, which the client
// has not seen if it changed right before.
func (w *watched) gone(name string, revision int64) {
	value, err := w.of.Feed.Before(w.ctx, w.of.Tenant, w.stored.Resource(), name, revision)
	if err != nil {
		w.cancel(err)
		return
	}
	var data []byte
	if value != nil {
		if object, err := w.stored.Decode(name, value, revision); err == nil { // a damaged one can be deleted
			data = w.encode(object)
		}
	}
	w.unselect(name, revision, data)
}

// unselect sends that an object has gone, unless the client does not have it.
func (w *watched) unselect(name string, revision int64, last []byte) {
	if w.selected != nil {
		if _, sent := w.selected[name]; !sent {
			return
		}
		delete(w.selected, name)
	}
	w.add(watchstream.Frame{Op: watchstream.Gone, Kind: w.number, Revision: revision, Name: name, Object: last})
}

func (w *watched) selects(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	return err == nil && w.kind.Selector.Matches(labels.Set(accessor.GetLabels()))
}

// encode returns an object in protocol buffers. All kinds of Kubernetes' own
// APIs have these.
func (w *watched) encode(object runtime.Object) []byte {
	message, ok := object.(interface{ Marshal() ([]byte, error) })
	if !ok {
		w.cancel(fmt.Errorf("encode %s: it has no protocol buffers", w.kind.Resource))
		return nil
	}
	data, err := message.Marshal()
	if err != nil {
		w.cancel(fmt.Errorf("encode %s: %w", w.kind.Resource, err))
		return nil
	}
	return data
}
