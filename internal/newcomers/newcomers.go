// Package newcomers bounds the connections of clients that have proven nothing.
package newcomers

import (
	"container/list"
	"net"
	"sync"
)

// Set has connections whose clients have proven nothing yet, in the order
// of their arrival. The oldest is closed for one too many: a client that has
// credentials proves it within a few round trips, and a flood does not, so that
// it displaces itself.
type Set struct {
	most int

	mu    sync.Mutex
	conns *list.List
}

// New returns a set of at most that many connections.
func New(most int) *Set { return &Set{most: most, conns: list.New()} }

// Add adds a connection, and returns what takes it out again.
func (s *Set) Add(conn net.Conn) (remove func()) {
	s.mu.Lock()
	own := s.conns.PushBack(conn)
	var oldest net.Conn
	if s.conns.Len() > s.most {
		oldest, _ = s.conns.Remove(s.conns.Front()).(net.Conn)
	}
	s.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // takes itself out, which has happened
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns.Remove(own) // nothing, if it has been displaced
	}
}

// Count returns the number of connections.
func (s *Set) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns.Len()
}
