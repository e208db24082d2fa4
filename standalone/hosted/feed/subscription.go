package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// pageSize limits how many records a list has in memory before their receiver
// decodes them.
const pageSize = 200

// Change is the latest state of a record that has changed.
type Change struct {
	// Name is the name of the object, with its namespace before it if it has
	// one: team/web.
	Name string
	// Value is what the apiserver stored; nil if the record was deleted. It is
	// shared and must not be changed.
	Value []byte
	// Revision is the one of the change. The revision of a deletion that was
	// missed is that of the list.
	Revision int64
	// Deleted is the revision at which an earlier record of this name was
	// deleted, if that change was superseded by this one; otherwise 0.
	Deleted int64
}

// Receiver receives the changes of a subscription, one call at a time. It must
// not panic: changes would be lost.
type Receiver interface {
	// Receive receives a change. The changes between two lists are ordered by
	// revision.
	Receive(change Change)
	// Names returns the records that the receiver has, so that a list can find
	// deletions that were missed.
	Names() []string
	// Listed is called when everything up to a revision has been received.
	Listed(revision int64)
}

// Subscription has the changes of a resource of a tenant that its owner has not
// received yet.
type Subscription struct {
	feed                     *Feed
	tenant, resource, prefix string
	wake                     func()

	// receiving is held by Receive.
	receiving sync.Mutex
	listed    int64 // the revision of the last list

	mu      sync.Mutex
	pending map[string]Change // by name
	// lost means that only a list can tell the state.
	lost   bool
	closed bool
}

// put adds a change and wakes the owner if it was the first. A change that is
// superseded before it is received is dropped.
func (s *Subscription) put(change Change) {
	if s.add(change) {
		s.wake()
	}
}

// add reports whether the owner has to be woken. A list that is still to come
// has the change.
func (s *Subscription) add(change Change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost || s.closed {
		return !s.closed
	}
	first := len(s.pending) == 0
	if before := s.pending[change.Name]; before.Deleted > 0 {
		change.Deleted = before.Deleted
	} else if before.Value == nil { // a deletion, or no change
		change.Deleted = before.Revision
	}
	s.pending[change.Name] = change
	return first
}

// lose drops pending changes: a list will replace them.
func (s *Subscription) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
	clear(s.pending)
}

// take returns the pending changes, in the order of their revisions.
func (s *Subscription) take() (changes []Change, lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, ErrClosed
	}
	lost, s.lost = s.lost, false
	if len(s.pending) == 0 {
		return nil, lost, nil
	}
	changes = slices.SortedFunc(maps.Values(s.pending), func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	s.pending = map[string]Change{} // a cleared map keeps its size
	return changes, lost, nil
}

// Receive passes everything pending to a receiver, which is always the same.
// The first call lists all records, and so does a call after changes were
// missed. If it fails, the next call lists again. The owner is woken for changes
// that come during the call, so that a resource that always changes does not
// delay others.
func (s *Subscription) Receive(ctx context.Context, to Receiver) error {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	changes, lost, err := s.take()
	if err != nil {
		return err
	}
	if lost {
		if err := s.list(ctx, to); err != nil {
			s.lose()
			return fmt.Errorf("list %s: %w", s.resource, err)
		}
		return nil
	}
	for _, change := range changes {
		if change.Revision <= s.listed { // the watch may lag behind the list
			continue
		}
		if change.Deleted <= s.listed {
			change.Deleted = 0
		}
		to.Receive(change)
	}
	return nil
}

// list passes all records to the receiver, and the deletions of those that it
// still has.
func (s *Subscription) list(ctx context.Context, to Receiver) error {
	missing := map[string]struct{}{}
	for _, name := range to.Names() {
		missing[name] = struct{}{}
	}
	begin, end := keyRange(s.prefix)
	var revision int64
	for {
		page, err := s.feed.read(ctx, begin, end, ReadOptions{Limit: pageSize, Revision: revision})
		if errors.Is(err, ErrCompacted) {
			return s.list(ctx, to) // compactions are rarer than lists are long
		}
		if err != nil {
			return err
		}
		if revision == 0 {
			revision = page.Revision
		}
		for _, kv := range page.Records {
			name := string(kv.Key[len(s.prefix):])
			delete(missing, name)
			to.Receive(recordOf(kv, name))
		}
		if len(page.Records) < pageSize {
			break
		}
		begin = slices.Concat(page.Records[len(page.Records)-1].Key, []byte{0}) // the next key
	}
	for name := range missing {
		to.Receive(Change{Name: name, Revision: revision})
	}
	s.listed = revision
	to.Listed(revision)
	return nil
}

// Close ends the subscription. It does not wait for a Receive in progress.
func (s *Subscription) Close() {
	s.feed.unsubscribe(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	clear(s.pending)
}
