package informer

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// store is where the reflector puts what it reads: into the index, and to the handlers.
type store struct{ *Informer }

var _ cache.TransformingStore = (*store)(nil)

// Transformer lets the reflector transform and pack objects while it collects them: a list is never in memory as it came.
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

// Add keeps an object. The watch may begin with some that are known.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update keeps an object.
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

// Delete drops an object, whose last state this is.
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
	if was, known, err := s.lockedGet(obj); err == nil && known {
		s.keep(-sizeOf(was))
	}
	if err := s.indexer.Delete(obj); err != nil {
		return err
	}
	s.lockedDeleted(obj)
	return nil
}

// lockedGet returns what is kept of an object.
func (s *store) lockedGet(obj any) (kept any, known bool, err error) {
	key, err := keyOf(obj)
	if err != nil {
		return nil, false, err
	}
	return s.indexer.kept(key)
}

// Replace keeps these objects alone. The final states of the others are unknown.
func (s *store) Replace(objects []any, resourceVersion string) error {
	list, err := s.listed(objects)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := make(map[string]any, len(list)) // still packed
	for _, key := range s.indexer.ListKeys() {
		// What ListKeys lists is there: nobody else writes.
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

// lockedReplaced tells the handlers what came and went between what was kept and a list, what went first.
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
		if before, known := was[l.key]; known {
			s.lockedUpdated(unpack(before), unpack(l.obj))
		} else {
			s.lockedAdded(unpack(l.obj), initial)
		}
	}
}

// Resync does nothing: the reflector is not asked to call it.
func (*store) Resync() error { return nil }

// listed is an object of a list, packed, with its key in the index.
type listed struct {
	key string
	obj any
}

// listed transforms and packs the objects of a list.
func (s *store) listed(objects []any) ([]listed, error) {
	list := make([]listed, 0, len(objects))
	there := make(map[string]bool, len(objects))
	// Those that were packed while they were collected are counted again, as the others are.
	s.forgetCollected()
	for _, obj := range objects {
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
		list = append(list, listed{key, kept})
	}
	return list, nil
}

func (s *store) transformed(obj any) (any, error) {
	if _, done := obj.(*packed); done || s.transform == nil {
		return obj, nil
	}
	changed, err := s.transform(obj)
	if err != nil {
		return nil, fmt.Errorf("transforming a %T: %w", obj, err)
	}
	return changed, nil
}
