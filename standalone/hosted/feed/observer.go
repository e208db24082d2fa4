package feed

import (
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Kind is the kind of a change.
type Kind int

// The kinds of changes.
const (
	Created Kind = iota
	Updated
	Deleted
	// Missed means that changes were missed, of any tenant and resource. An
	// observer that counts on them has to count records again.
	Missed
)

type observer struct {
	observe func(tenant, resource string, kind Kind)
}

// Observe calls a function for the changes of all tenants, without their names
// and contents, until stop is called. It is for the host alone. The function is
// called in the goroutine of Run: it must not block, and neither subscribe nor
// stop.
func (f *Feed) Observe(observe func(tenant, resource string, kind Kind)) (stop func()) {
	o := &observer{observe: observe}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observers = append(f.observers, o)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.observers = slices.DeleteFunc(slices.Clone(f.observers), func(other *observer) bool { return other == o })
	}
}

// notify is called under the lock.
func (f *Feed) notify(tenant, resource string, kind Kind) {
	for _, o := range f.observers {
		o.observe(tenant, resource, kind)
	}
}

func kindOf(event *mvccpb.Event) Kind {
	switch {
	case event.Type == mvccpb.DELETE:
		return Deleted
	case event.Kv.CreateRevision == event.Kv.ModRevision:
		return Created
	default:
		return Updated
	}
}
