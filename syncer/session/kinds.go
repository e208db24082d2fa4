package session

import (
	"iter"
	"maps"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Kinds are the kinds that are synced for a tenant. The zero value has none.
type Kinds struct {
	byName atomic.Pointer[map[string]*kinds.Kind] // the map is never changed
}

// all returns the kinds by name.
func (s *Kinds) all() map[string]*kinds.Kind {
	if byName := s.byName.Load(); byName != nil {
		return *byName
	}
	return nil
}

// Kind returns the synced kind of a name; nil if there is none.
func (s *Kinds) Kind(name string) *kinds.Kind { return s.all()[name] }

// KindOf returns the synced kind of a group and kind; nil if there is none.
func (s *Kinds) KindOf(gk schema.GroupKind) *kinds.Kind {
	for _, name := range []string{gk.Kind, gk.String()} {
		if k := s.Kind(name); k != nil && k.GVK.GroupKind() == gk {
			return k
		}
	}
	return nil
}

// SyncedKinds returns the kinds that are synced.
func (s *Kinds) SyncedKinds() iter.Seq[*kinds.Kind] { return maps.Values(s.all()) }

// AddKind adds a kind to those that are synced, or replaces the one of its
// name.
func (s *Kinds) AddKind(k *kinds.Kind) {
	for {
		was, now := s.byName.Load(), map[string]*kinds.Kind{}
		if was != nil {
			maps.Copy(now, *was)
		}
		now[k.Name] = k
		if s.byName.CompareAndSwap(was, &now) {
			return
		}
	}
}
