package informer

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// store receives objects from the reflector, and passes them to the index and
// the handlers.
type store struct{ *Informer }

var _ cache.TransformingStore = (*store)(nil)

// Transformer lets the reflector transform and pack objects while it collects a
// list, so that the list is never in memory in its original form.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if _, done := obj.(*packed); done {
			return obj, nil
		}
		if s.isDropped(obj) {
			return dropped{}, nil
		}
		obj, err := s.transformed(obj)
		if err != nil {
			return nil, err
		}
		kept, err := s.indexer.pack(obj)
		if err != nil {
			return nil, err
		}
		if !s.collect(sizeOf(kept)) {
			return dropped{}, nil
		}
		return kept, nil
	}
}

// Add stores an object, which may be known already at the beginning of a watch.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update stores an object.
func (s *store) Update(obj any) error {
	if s.isDropped(obj) {
		return nil
	}
	obj, err := s.transformed(obj)
	if err != nil {
		return err
	}
	kept, err := s.indexer.pack(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known, err := s.lockedGet(obj)
	if err != nil {
		return err
	}
	change := sizeOf(kept)
	if known {
		change -= sizeOf(was)
	}
	if !s.keep(change) {
		return nil
	}
	was = unpack(was)
	if err := s.indexer.Update(kept); err != nil {
		return err
	}
	if known {
		s.lockedUpdated(was, obj)
	} else {
		s.lockedAdded(obj, false)
	}
	return nil
}

// Delete deletes an object. obj is its final state. The handlers are not
// notified of the deletion of an object that is not stored: an apiserver can
// claim any number.
func (s *store) Delete(obj any) error {
	if s.isDropped(obj) {
		return nil
	}
	obj, err := s.transformed(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known, err := s.lockedGet(obj)
	if err != nil || !known {
		return err
	}
	s.keep(-sizeOf(was))
	if err := s.indexer.Delete(obj); err != nil {
		return err
	}
	s.lockedDeleted(obj)
	return nil
}

// lockedGet returns the stored form of an object.
func (s *store) lockedGet(obj any) (kept any, known bool, err error) {
	key, err := keyOf(obj)
	if err != nil {
		return nil, false, err
	}
	return s.indexer.kept(key)
}

// Replace stores these objects and deletes all others, whose final states are
// unknown.
func (s *store) Replace(objects []any, resourceVersion string) error {
	list, err := s.listed(objects)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := make(map[string]any, len(list)) // still packed
	for _, key := range s.indexer.ListKeys() {
		// The listed keys exist, because there is no other writer.
		was[key], _, _ = s.indexer.kept(key)
	}
	kept := make([]any, len(list))
	for n, l := range list {
		kept[n] = l.obj
	}
	if err := s.indexer.Replace(kept, resourceVersion); err != nil {
		return err
	}
	s.keepCollected()
	s.lockedReplaced(was, list)
	if !s.HasSynced() {
		close(s.synced)
	}
	return nil
}

// lockedReplaced notifies the handlers of the difference between the stored
// objects and a list, deletions first.
func (s *store) lockedReplaced(was map[string]any, list []listed) {
	initial := !s.HasSynced()
	there := make(map[string]bool, len(list))
	for _, l := range list {
		there[l.key] = true
	}
	for key, obj := range was {
		if !there[key] {
			s.lockedDeleted(cache.DeletedFinalStateUnknown{Key: key, Obj: unpack(obj)})
		}
	}
	for _, l := range list {
		if l.same {
			continue
		}
		if before, known := was[l.key]; known {
			s.lockedUpdated(unpack(before), unpack(l.obj))
		} else {
			s.lockedAdded(unpack(l.obj), initial)
		}
	}
}

// Resync does nothing, since the reflector is not configured to call it.
func (*store) Resync() error { return nil }

// listed is a packed object of a list, with its key in the index.
type listed struct {
	key string
	obj any
	// same is set if the index has the object already.
	same bool
}

// listed transforms and packs the objects of a list.
func (s *store) listed(objects []any) ([]listed, error) {
	list := make([]listed, 0, len(objects))
	there := make(map[string]bool, len(objects))
	// Objects that were packed while the list was collected are counted again,
	// like the others.
	s.forgetCollected()
	for _, obj := range objects {
		if known, ok := obj.(unchanged); ok && !there[known.key] && s.collect(sizeOf(known.kept)) {
			there[known.key] = true
			list = append(list, listed{known.key, known.kept, true})
			continue
		}
		kept, err := s.Transformer()(obj)
		if err != nil {
			return nil, err
		}
		if _, done := obj.(*packed); done && !s.collect(sizeOf(kept)) {
			continue
		}
		if _, none := kept.(dropped); none {
			continue
		}
		key, err := keyOf(kept)
		if err != nil {
			return nil, err
		}
		if there[key] {
			s.reject(ReasonDuplicate)
			continue
		}
		there[key] = true
		list = append(list, listed{key, kept, false})
	}
	return list, nil
}

func (s *store) transformed(obj any) (any, error) {
	if _, done := obj.(*packed); done || s.transform == nil {
		return obj, nil
	}
	changed, err := s.transform(obj)
	if err != nil {
		return nil, fmt.Errorf("transform %T: %w", obj, err)
	}
	return changed, nil
}
